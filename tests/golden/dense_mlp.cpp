// The plain data-parallel program to compare with: every rank holds all parameters, gradients and optimizer
// state, local gradients are added in rank order. No libgemini; the forward and backward arithmetic of one
// rank is the example's, so local gradients are the same bits. Takes the example's options as far as needed.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>

#include "dense_arguments.hpp"
extern "C" {
#include "fashion_mnist.h"
#include "mlp.h"
#include "samples.h"
}

namespace {

constexpr int kLayers = 3;
constexpr int kWidths[kLayers + 1] = {784, 256, 128, 10};

// Where weight and bias of each layer lie in one array of everything.
struct Layout {
  std::size_t first[2 * kLayers + 1] = {};
  Layout() {
    for (int k = 0; k < 2 * kLayers; ++k)
      first[k + 1] = first[k] + std::size_t(kWidths[k / 2 + 1]) * (k % 2 ? 1 : kWidths[k / 2]);
  }
  [[nodiscard]] std::size_t size() const { return first[2 * kLayers]; }
};

template <class Real>
class DenseTraining {
 public:
  DenseTraining(const Arguments& arguments, const dataset_t& data)
      : arguments_(arguments),
        data_(data),
        w_(layout_.size()),
        local_(layout_.size()),
        total_(layout_.size()),
        optimizer_(arguments.settings, layout_.size()) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    gathered_.resize(layout_.size() * std::size_t(ranks_));
    labels_.resize(std::size_t(arguments.batch));
    if (mlp_create(&net_, arguments.dtype, arguments.arithmetic, kLayers, kWidths, arguments.batch) != 0)
      throw std::bad_alloc();
    initialise();
  }
  ~DenseTraining() { mlp_destroy(&net_); }
  DenseTraining(const DenseTraining&) = delete;
  DenseTraining& operator=(const DenseTraining&) = delete;

  void run() {
    for (long long step = 0; step < arguments_.steps; ++step) {
      const int accumulate = arguments_.settings.accumulate;
      double loss = 0;
      for (int m = 0; m < accumulate; ++m) {
        loss += micro_batch(step * accumulate + m);
        reduce(m == 0);
      }
      update(step, loss);
    }
    if (rank_ == 0) print_parameters();
  }

 private:
  void initialise() {
    for (int k = 0; k < 2 * kLayers; ++k) {
      const double scale = 1 / std::sqrt(double(kWidths[k / 2]));
      for (std::size_t i = layout_.first[k]; i < layout_.first[k + 1]; ++i) {
        const std::uint64_t index = i - layout_.first[k] + 1 + std::uint64_t(k) * 7919;
        const double u = double(index * 2654435761u % (std::uint64_t(1) << 32)) / 4294967296.0;
        w_[i] = Real(scale * (2 * u - 1));
      }
    }
  }

  // This rank's loss; its gradient goes to local_.
  double micro_batch(long long number) {
    int first = 0;
    const int mine = samples_part(arguments_.batch, rank_, ranks_, &first);
    for (int i = 0; i < mine; ++i) {
      const std::size_t sample = std::size_t((number * arguments_.batch + first + i) % data_.count);
      mlp_set_input(&net_, i, data_.pixels + sample * FASHION_MNIST_PIXELS);
      labels_[std::size_t(i)] = data_.labels[sample];
    }
    for (int l = 0; l < kLayers; ++l)
      mlp_forward(&net_, l, mine, &w_[layout_.first[2 * l]], &w_[layout_.first[2 * l + 1]]);
    const double share = ranks_ / (double(arguments_.batch) * arguments_.settings.accumulate);
    const mlp_score_t score = mlp_loss(&net_, mine, labels_.data(), share);
    for (int l = kLayers - 1; l >= 0; --l)
      mlp_backward(&net_, l, mine, &w_[layout_.first[2 * l]], {&local_[layout_.first[2 * l]], 0},
                   {&local_[layout_.first[2 * l + 1]], 0});
    return score.loss;
  }

  // The mean over ranks, added in rank order, joins the total of earlier micro-batches.
  void reduce(bool fresh) {
    const std::size_t size = layout_.size();
    MPI_Allgather(local_.data(), int(size * sizeof(Real)), MPI_BYTE, gathered_.data(),
                  int(size * sizeof(Real)), MPI_BYTE, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < size; ++i) {
      Real sum = gathered_[i];
      for (int r = 1; r < ranks_; ++r) sum += gathered_[std::size_t(r) * size + i];
      const Real mean = sum / Real(ranks_);
      total_[i] = fresh ? mean : total_[i] + mean;
    }
  }

  void update(long long step, double loss) {
    long double squares = 0;
    for (const Real g : total_) squares += static_cast<long double>(double(g) * double(g));
    const double norm = double(std::sqrt(squares)), most = arguments_.settings.max_grad_norm;
    const double factor = most > 0 && most < norm + 1e-6 ? most / (norm + 1e-6) : 1;
    optimizer_.update(w_, total_, factor, step + 1);
    double sum = 0;
    MPI_Allreduce(&loss, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank_ == 0)
      std::printf("step %lld loss %.17g grad_norm %.17g\n", step,
                  sum / (double(arguments_.batch) * arguments_.settings.accumulate), norm);
  }

  void print_parameters() const {
    for (int k = 0; k < 2 * kLayers; ++k) {
      double sum = 0, magnitudes = 0;
      for (std::size_t i = layout_.first[k]; i < layout_.first[k + 1]; ++i) {
        sum += double(w_[i]);
        magnitudes += std::fabs(double(w_[i]));
      }
      std::printf("param %d sum %.17g abs %.17g first %.17g last %.17g\n", k, sum, magnitudes,
                  double(w_[layout_.first[k]]), double(w_[layout_.first[k + 1] - 1]));
    }
  }

  const Arguments& arguments_;
  const dataset_t& data_;
  Layout layout_;
  std::vector<Real> w_, local_, total_, gathered_;
  std::vector<std::uint8_t> labels_;
  DenseOptimizer<Real> optimizer_;
  mlp_t net_;
  int rank_ = 0, ranks_ = 1;
};

void train(const Arguments& arguments) {
  dataset_t data;
  char words[2048];
  if (fashion_mnist_read(arguments.data.c_str(), "train", &data, words, sizeof words) != 0)
    throw std::runtime_error(words);
  if (arguments.dtype == MLP_F64)
    DenseTraining<double>(arguments, data).run();
  else
    DenseTraining<float>(arguments, data).run();
  fashion_mnist_free(&data);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    train(parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
