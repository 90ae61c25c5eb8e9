#include "transformer.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace gemini_bench {
namespace {

constexpr int kModel = 512, kHidden = 2048, kHeads = 8, kLayers = 4, kVocabulary = 2048;
constexpr int kHead = kModel / kHeads, kQkv = 3 * kModel;
constexpr int kLongest = 256;  // tokens of a sequence

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}
std::size_t size(int rows, int columns = 1) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
}

struct Matrix {
  const float* data;
  int stride;
  bool transposed = false;
};

// c[rows x columns] = alpha a b (+ c), a of `inner` columns
void multiply(int rows, int columns, int inner, Matrix a, Matrix b, float* c, int stride, bool adds = false,
              float alpha = 1) {
  const auto form = [](const Matrix& m) { return m.transposed ? CblasTrans : CblasNoTrans; };
  cblas_sgemm(CblasRowMajor, form(a), form(b), rows, columns, inner, alpha, a.data, a.stride, b.data,
              b.stride, adds ? 1.0F : 0.0F, c, stride);
}

void add_bias(float* x, const float* bias, int rows, int columns) {
  for (int r = 0; r < rows; ++r, x += columns)
    for (int c = 0; c < columns; ++c) x[c] += bias[c];
}

void sum_rows(const float* x, float* sum, int rows, int columns) {
  std::fill_n(sum, columns, 0.0F);
  add_bias(sum, x, 1, columns);
  for (int r = 1; r < rows; ++r) add_bias(sum, x + size(r, columns), 1, columns);
}

void soften(float* x, int count) {
  const float most = *std::max_element(x, x + count);
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += x[i] = std::exp(x[i] - most);
  for (int i = 0; i < count; ++i) x[i] /= sum;
}

// Of a layer's parameters.
enum : std::size_t {
  kGain1,
  kBias1,
  kQkvWeight,
  kQkvBias,
  kOutWeight,
  kOutBias,
  kGain2,
  kBias2,
  kUp,
  kUpBias,
  kDown,
  kDownBias
};

}  // namespace

std::string blas_kernels() {
#ifdef HAVE_OPENBLAS_GET_CORENAME
  return openblas_get_corename();
#else
  return {};
#endif
}

std::vector<std::vector<Tensor>> Transformer::operations() {
  using Begins = Tensor::Begins;
  std::vector<std::vector<Tensor>> all = {{{"embedding", kVocabulary * kModel, Begins::normal}}};
  for (int l = 0; l < kLayers; ++l) {
    const std::string layer = "layer" + std::to_string(l) + ".";
    all.push_back({{layer + "norm1.gain", kModel, Begins::ones},
                   {layer + "norm1.bias", kModel, Begins::zeros},
                   {layer + "qkv.weight", kModel * kQkv, Begins::normal},
                   {layer + "qkv.bias", kQkv, Begins::zeros},
                   {layer + "out.weight", kModel * kModel, Begins::normal},
                   {layer + "out.bias", kModel, Begins::zeros},
                   {layer + "norm2.gain", kModel, Begins::ones},
                   {layer + "norm2.bias", kModel, Begins::zeros},
                   {layer + "up.weight", kModel * kHidden, Begins::normal},
                   {layer + "up.bias", kHidden, Begins::zeros},
                   {layer + "down.weight", kHidden * kModel, Begins::normal},
                   {layer + "down.bias", kModel, Begins::zeros}});
  }
  all.push_back({{"norm.gain", kModel, Begins::ones},
                 {"norm.bias", kModel, Begins::zeros},
                 {"output.weight", kModel * kVocabulary, Begins::normal}});
  return all;
}

Transformer::Transformer(int tokens, int rank)
    : tokens_(tokens),
      sequence_(std::min(tokens, kLongest)),
      layers_(kLayers),
      last_(size(tokens, kModel)),
      logits_(size(tokens, kVocabulary)),
      stream_(size(tokens, kModel)),
      wide_(size(tokens, kHidden)),
      qkv_(size(tokens, kQkv)),
      narrow_(size(tokens, kModel)),
      scores_(size(sequence_, sequence_)) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  for (int i = 0; i < tokens; ++i) ids_.push_back(static_cast<int>(random() % kVocabulary));
  for (int i = 0; i < tokens; ++i) targets_.push_back((7 * ids_[at(i)] + 1) % kVocabulary);
  const auto reserve = [&](Norm& norm) {
    norm.out.resize(size(tokens, kModel));
    norm.mean.resize(size(tokens));
    norm.scale.resize(size(tokens));
  };
  reserve(final_);
  for (Layer& layer : layers_) {
    for (Values* values : {&layer.in, &layer.attended, &layer.middle}) values->resize(size(tokens, kModel));
    layer.qkv.resize(size(tokens, kQkv));
    layer.probabilities.resize(size(tokens * kHeads, sequence_));
    layer.hidden.resize(size(tokens, kHidden));
    reserve(layer.before_attention);
    reserve(layer.before_hidden);
  }
}

float* Transformer::input_of(int layer) {
  return layer == kLayers ? last_.data() : layers_[at(layer)].in.data();
}

void Transformer::forward(int operation, const Weights& weights) {
  if (operation == 0) return embed(weights);
  if (operation > kLayers) return output(weights);
  layer_forward(layers_[at(operation - 1)], input_of(operation), weights);
}

void Transformer::backward(int operation, const Weights& weights, const Gradients& gradients) {
  if (operation == 0) return embed_backward(gradients);
  if (operation > kLayers) return output_backward(weights, gradients);
  layer_backward(layers_[at(operation - 1)], weights, gradients);
}

void Transformer::embed(const Weights& weights) {
  for (int t = 0; t < tokens_; ++t)
    std::copy_n(weights[0] + size(ids_[at(t)], kModel), kModel, input_of(0) + size(t, kModel));
}

void Transformer::embed_backward(const Gradients& gradients) {
  std::fill_n(gradients[0], size(kVocabulary, kModel), 0.0F);
  for (int t = 0; t < tokens_; ++t)
    add_bias(gradients[0] + size(ids_[at(t)], kModel), stream_.data() + size(t, kModel), 1, kModel);
}

void Transformer::normalise(const float* in, const float* gain, const float* bias, Norm& norm) const {
  for (int t = 0; t < tokens_; ++t) {
    const float* x = in + size(t, kModel);
    float* y = norm.out.data() + size(t, kModel);
    float sum = 0, squares = 0;
    for (int c = 0; c < kModel; ++c) sum += x[c];
    const float mean = sum / kModel;
    for (int c = 0; c < kModel; ++c) squares += (x[c] - mean) * (x[c] - mean);
    const float scale = 1 / std::sqrt(squares / kModel + 1e-5F);
    for (int c = 0; c < kModel; ++c) y[c] = (x[c] - mean) * scale * gain[c] + bias[c];
    norm.mean[at(t)] = mean;
    norm.scale[at(t)] = scale;
  }
}

// narrow_ is the gradient of what came out; that of what went in is added to the stream.
void Transformer::normalise_backward(const float* in, const Norm& norm, const float* gain,
                                     float* gain_gradient, float* bias_gradient) {
  std::fill_n(gain_gradient, kModel, 0.0F);
  std::fill_n(bias_gradient, kModel, 0.0F);
  for (int t = 0; t < tokens_; ++t) {
    const float* x = in + size(t, kModel);
    const float* dy = narrow_.data() + size(t, kModel);
    float* dx = stream_.data() + size(t, kModel);
    const float mean = norm.mean[at(t)], scale = norm.scale[at(t)];
    float sum = 0, product = 0;
    for (int c = 0; c < kModel; ++c) {
      const float normal = (x[c] - mean) * scale, d = dy[c] * gain[c];
      sum += d;
      product += d * normal;
      gain_gradient[c] += dy[c] * normal;
      bias_gradient[c] += dy[c];
    }
    sum /= kModel;
    product /= kModel;
    for (int c = 0; c < kModel; ++c)
      dx[c] += scale * (dy[c] * gain[c] - sum - (x[c] - mean) * scale * product);
  }
}

void Transformer::attend(Layer& layer) {
  const float scale = 1 / std::sqrt(static_cast<float>(kHead));
  float* p = layer.probabilities.data();
  for (int first = 0; first < tokens_; first += sequence_)
    for (int h = 0; h < kHeads; ++h, p += size(sequence_, sequence_)) {
      const float* q = layer.qkv.data() + size(first, kQkv) + h * kHead;
      multiply(sequence_, sequence_, kHead, {q, kQkv}, {q + kModel, kQkv, true}, p, sequence_, false, scale);
      for (int row = 0; row < sequence_; ++row) {
        soften(p + size(row, sequence_), row + 1);
        std::fill(p + size(row, sequence_) + row + 1, p + size(row + 1, sequence_), 0.0F);
      }
      multiply(sequence_, kHead, sequence_, {p, sequence_}, {q + size(2, kModel), kQkv},
               layer.attended.data() + size(first, kModel) + h * kHead, kModel);
    }
}

// narrow_ is the gradient of what was attended to, qkv_ becomes that of queries, keys and values.
void Transformer::attend_backward(Layer& layer) {
  const float scale = 1 / std::sqrt(static_cast<float>(kHead));
  const float* p = layer.probabilities.data();
  for (int first = 0; first < tokens_; first += sequence_)
    for (int h = 0; h < kHeads; ++h, p += size(sequence_, sequence_)) {
      const float* q = layer.qkv.data() + size(first, kQkv) + h * kHead;
      const float* d = narrow_.data() + size(first, kModel) + h * kHead;
      float* dq = qkv_.data() + size(first, kQkv) + h * kHead;
      float* s = scores_.data();
      multiply(sequence_, sequence_, kHead, {d, kModel}, {q + size(2, kModel), kQkv, true}, s, sequence_);
      multiply(sequence_, kHead, sequence_, {p, sequence_, true}, {d, kModel}, dq + size(2, kModel), kQkv);
      for (int row = 0; row < sequence_; ++row) {
        float* ds = s + size(row, sequence_);
        const float* weight = p + size(row, sequence_);
        float sum = 0;
        for (int c = 0; c < sequence_; ++c) sum += ds[c] * weight[c];
        for (int c = 0; c < sequence_; ++c) ds[c] = (ds[c] - sum) * weight[c] * scale;
      }
      multiply(sequence_, kHead, sequence_, {s, sequence_}, {q + kModel, kQkv}, dq, kQkv);
      multiply(sequence_, kHead, sequence_, {s, sequence_, true}, {q, kQkv}, dq + kModel, kQkv);
    }
}

void Transformer::layer_forward(Layer& l, float* out, const Weights& w) {
  const int t = tokens_;
  normalise(l.in.data(), w[kGain1], w[kBias1], l.before_attention);
  multiply(t, kQkv, kModel, {l.before_attention.out.data(), kModel}, {w[kQkvWeight], kQkv}, l.qkv.data(),
           kQkv);
  add_bias(l.qkv.data(), w[kQkvBias], t, kQkv);
  attend(l);
  l.middle = l.in;
  multiply(t, kModel, kModel, {l.attended.data(), kModel}, {w[kOutWeight], kModel}, l.middle.data(), kModel,
           true);
  add_bias(l.middle.data(), w[kOutBias], t, kModel);
  normalise(l.middle.data(), w[kGain2], w[kBias2], l.before_hidden);
  multiply(t, kHidden, kModel, {l.before_hidden.out.data(), kModel}, {w[kUp], kHidden}, l.hidden.data(),
           kHidden);
  add_bias(l.hidden.data(), w[kUpBias], t, kHidden);
  for (float& value : l.hidden) value = std::max(value, 0.0F);
  std::copy(l.middle.begin(), l.middle.end(), out);
  multiply(t, kModel, kHidden, {l.hidden.data(), kHidden}, {w[kDown], kModel}, out, kModel, true);
  add_bias(out, w[kDownBias], t, kModel);
}

void Transformer::layer_backward(Layer& l, const Weights& w, const Gradients& g) {
  const int t = tokens_;
  const float* d = stream_.data();
  multiply(kHidden, kModel, t, {l.hidden.data(), kHidden, true}, {d, kModel}, g[kDown], kModel);
  sum_rows(d, g[kDownBias], t, kModel);
  multiply(t, kHidden, kModel, {d, kModel}, {w[kDown], kModel, true}, wide_.data(), kHidden);
  for (std::size_t i = 0; i < wide_.size(); ++i) wide_[i] = l.hidden[i] > 0 ? wide_[i] : 0.0F;
  multiply(kModel, kHidden, t, {l.before_hidden.out.data(), kModel, true}, {wide_.data(), kHidden}, g[kUp],
           kHidden);
  sum_rows(wide_.data(), g[kUpBias], t, kHidden);
  multiply(t, kModel, kHidden, {wide_.data(), kHidden}, {w[kUp], kHidden, true}, narrow_.data(), kModel);
  normalise_backward(l.middle.data(), l.before_hidden, w[kGain2], g[kGain2], g[kBias2]);

  multiply(kModel, kModel, t, {l.attended.data(), kModel, true}, {d, kModel}, g[kOutWeight], kModel);
  sum_rows(d, g[kOutBias], t, kModel);
  multiply(t, kModel, kModel, {d, kModel}, {w[kOutWeight], kModel, true}, narrow_.data(), kModel);
  attend_backward(l);
  multiply(kModel, kQkv, t, {l.before_attention.out.data(), kModel, true}, {qkv_.data(), kQkv}, g[kQkvWeight],
           kQkv);
  sum_rows(qkv_.data(), g[kQkvBias], t, kQkv);
  multiply(t, kModel, kQkv, {qkv_.data(), kQkv}, {w[kQkvWeight], kQkv, true}, narrow_.data(), kModel);
  normalise_backward(l.in.data(), l.before_attention, w[kGain1], g[kGain1], g[kBias1]);
}

void Transformer::output(const Weights& w) {
  normalise(last_.data(), w[0], w[1], final_);
  multiply(tokens_, kVocabulary, kModel, {final_.out.data(), kModel}, {w[2], kVocabulary}, logits_.data(),
           kVocabulary);
  loss_ = 0;
  for (int t = 0; t < tokens_; ++t) {
    float* row = logits_.data() + size(t, kVocabulary);
    soften(row, kVocabulary);
    loss_ -= std::log(std::max(row[targets_[at(t)]], 1e-30F)) / tokens_;
    row[targets_[at(t)]] -= 1;  // the gradient, but for the number of tokens
  }
}

void Transformer::output_backward(const Weights& w, const Gradients& g) {
  for (float& value : logits_) value /= static_cast<float>(tokens_);
  multiply(kModel, kVocabulary, tokens_, {final_.out.data(), kModel, true}, {logits_.data(), kVocabulary},
           g[2], kVocabulary);
  multiply(tokens_, kModel, kVocabulary, {logits_.data(), kVocabulary}, {w[2], kVocabulary, true},
           narrow_.data(), kModel);
  std::fill(stream_.begin(), stream_.end(), 0.0F);
  normalise_backward(last_.data(), final_, w[0], g[0], g[1]);
}

}  // namespace gemini_bench
