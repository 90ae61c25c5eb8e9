// Forward and backward of a decoder-only transformer (pre-norm, ReLU, causal attention) of some 15 million
// f32 parameters, on one rank, with BLAS. Weights are read and gradients written where the caller says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gemini_bench {

struct Tensor {
  std::string name;
  std::int64_t elems;
  enum class Begins { normal, zeros, ones } begins;  // normal: with standard deviation 0.02
};

// The processor that BLAS chose its kernels for; "" if it does not say.
std::string blas_kernels();

class Transformer {
 public:
  // The same inputs in every step; they depend on the rank.
  Transformer(int tokens, int rank);

  // Parameters by operation: embedding, layers, output.
  [[nodiscard]] static std::vector<std::vector<Tensor>> operations();

  // In order, and back. Gradients are overwritten, every element.
  void forward(int operation, const std::vector<const float*>& weights);
  void backward(int operation, const std::vector<const float*>& weights,
                const std::vector<float*>& gradients);
  // Of the last forward, over this rank's tokens.
  [[nodiscard]] double loss() const { return loss_; }

 private:
  using Values = std::vector<float>;
  struct Norm {
    Values out, mean, scale;
  };
  struct Layer {
    Values in, qkv, probabilities, attended, middle, hidden;
    Norm before_attention, before_hidden;
  };
  using Weights = std::vector<const float*>;
  using Gradients = std::vector<float*>;

  void embed(const Weights& weights);
  void embed_backward(const Gradients& gradients);
  void layer_forward(Layer& layer, float* out, const Weights& weights);
  void layer_backward(Layer& layer, const Weights& weights, const Gradients& gradients);
  void attend(Layer& layer);
  void attend_backward(Layer& layer);
  void output(const Weights& weights);
  void output_backward(const Weights& weights, const Gradients& gradients);
  void normalise(const float* in, const float* gain, const float* bias, Norm& norm) const;
  void normalise_backward(const float* in, const Norm& norm, const float* gain, float* gain_gradient,
                          float* bias_gradient);
  [[nodiscard]] float* input_of(int layer);  // the last: of the output

  int tokens_, sequence_;
  std::vector<int> ids_, targets_;
  std::vector<Layer> layers_;
  Values last_, logits_;
  Norm final_;
  Values stream_;                        // gradient of what passes from layer to layer
  Values wide_, qkv_, narrow_, scores_;  // scratch of backward
  double loss_ = 0;
};

}  // namespace gemini_bench
