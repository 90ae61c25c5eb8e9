// The problem trained by one plain loop that holds everything: docs/formulas.md, a rounding after every
// operation. Nothing here is the library's.
#include <cmath>
#include <map>

#include "model.hpp"
#include "narrow.hpp"

namespace equivalence {
namespace {

__extension__ typedef __float128 Quad;  // wide enough that the sums of squares here are exact or nearly so

struct State {
  std::vector<double> master, m, v, sum;
  int count = 0;  // updates
};

class DenseRun {
 public:
  DenseRun(const Problem& problem, int ranks, int ranks_per_node)
      : problem_(problem), ranks_(ranks), ranks_per_node_(ranks_per_node), tensors_(tensors_of(problem)) {
    for (const auto& [key, value] : problem.options) options_[key] = value;
    bool any_f16 = false;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      State state;
      for (std::int64_t i = 0; i < tensors_[t].elems; ++i)
        state.master.push_back(rounded(tensors_[t].dtype, initial_value(static_cast<int>(t), i)));
      state.m.resize(state.master.size());
      state.v.resize(state.master.size());
      states_.push_back(std::move(state));
      any_f16 = any_f16 || (tensors_[t].dtype == GEMINI_F16 && !tensors_[t].frozen);
    }
    if (any_f16) scale_ = number("initial_scale", 65536);
    dynamic_ = any_f16;
    left_ = static_cast<int>(number("hysteresis", 2));
  }

  Result train() {
    Result result;
    for (int step = 0; step < kSteps; ++step) {
      for (State& state : states_) state.sum.assign(state.master.size(), 0.0);
      for (int micro_batch = 0; micro_batch < problem_.accumulate; ++micro_batch)
        add_micro_batch(step, micro_batch);
      update(step, result);
    }
    for (const State& state : states_) result.values.push_back(state.master);
    return result;
  }

 private:
  double number(const std::string& key, double fallback) const {
    const auto found = options_.find(key);
    return found == options_.end() ? fallback : std::stod(found->second);
  }
  std::string word(const std::string& key, const std::string& fallback) const {
    const auto found = options_.find(key);
    return found == options_.end() ? fallback : found->second;
  }
  // Rounds to what the tensor's sums and moments are kept in.
  static double r(const Tensor& tensor, double x) {
    return tensor.dtype == GEMINI_F64 ? x : static_cast<double>(static_cast<float>(x));
  }
  [[nodiscard]] double compute_value(std::size_t t, std::int64_t i) const {
    return rounded(tensors_[t].dtype, states_[t].master[static_cast<std::size_t>(i)]);
  }

  // What a rank's gradient buffer of the tensor holds at the end of the micro-batch.
  std::vector<double> contribution(std::size_t t, const When& when) const {
    std::vector<double> buffer(states_[t].master.size());
    if (!asks(static_cast<int>(t), when)) return buffer;
    const auto& ops = operations();
    bool written = false;
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      if (op->own != static_cast<int>(t)) continue;
      const auto o = static_cast<std::size_t>(op->other);
      for (std::int64_t i = 0; i < tensors_[t].elems; ++i) {
        const double read = tensors_[o].elems > 0 ? compute_value(o, i * 7 % tensors_[o].elems) : 0;
        const gemini_dtype_t type = tensors_[t].grad_dtype;
        const double value =
            rounded(type, gradient_value(op->own, i, when, compute_value(t, i), read, scale_));
        double& slot = buffer[static_cast<std::size_t>(i)];
        slot = written ? rounded(type, slot + value) : value;
      }
      written = true;
    }
    return buffer;
  }

  void add_micro_batch(int step, int micro_batch) {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (tensors_[t].frozen) continue;
      std::vector<double> total;
      for (int first = 0; first < ranks_; first += ranks_per_node_) {
        std::vector<double> of_node;
        for (int rank = first; rank < std::min(ranks_, first + ranks_per_node_); ++rank)
          add(t, contribution(t, {step, micro_batch, rank}), of_node);
        add(t, of_node, total);
      }
      for (std::size_t i = 0; i < total.size(); ++i)
        states_[t].sum[i] = r(tensors_[t], states_[t].sum[i] + r(tensors_[t], total[i] / ranks_));
    }
  }

  // to: empty before the first.
  void add(std::size_t t, const std::vector<double>& from, std::vector<double>& to) const {
    if (to.empty()) return void(to = from);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = r(tensors_[t], to[i] + from[i]);
  }

  [[nodiscard]] bool anyone_asked(std::size_t t, int step) const {
    for (int micro_batch = 0; micro_batch < problem_.accumulate; ++micro_batch)
      for (int rank = 0; rank < ranks_; ++rank)
        if (asks(static_cast<int>(t), {step, micro_batch, rank})) return true;
    return false;
  }

  void update(int step, Result& result) {
    Quad squares = 0;
    double largest = 0;
    bool finite = true;
    for (const State& state : states_)
      for (const double g : state.sum) {
        finite = finite && std::isfinite(g);
        squares += static_cast<Quad>(g * g);
        largest = std::fmax(largest, std::fabs(g));
      }
    const double norm =
        (word("grad_norm", "2") == "inf" ? largest : std::sqrt(static_cast<double>(squares))) / scale_;
    const double max_norm = number("max_grad_norm", 0);
    const double clip = max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (norm + 1e-6));
    const double factor = clip / scale_;
    result.norms.push_back(norm);
    result.skipped.push_back(finite ? 0 : 1);
    result.updated.push_back(0);
    move_scale(!finite);
    if (!finite) return;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (tensors_[t].frozen || !anyone_asked(t, step)) continue;
      ++result.updated.back();
      update_tensor(tensors_[t], states_[t], factor);
    }
  }

  void move_scale(bool overflow) {
    if (!dynamic_) return;
    clean_ = overflow ? 0 : clean_ + 1;
    if (overflow) left_ = std::max(0, left_ - 1);
    if (overflow && left_ == 0) scale_ = std::max(1.0, scale_ * 0.5);
    if (clean_ < number("growth_interval", 1000)) return;
    clean_ = 0;
    left_ = static_cast<int>(number("hysteresis", 2));
    scale_ *= 2;
  }

  static double power(double base, int n) {
    if (n == 0) return 1.0;
    if (n % 2 != 0) return power(base, n - 1) * base;
    const double root = power(base, n / 2);
    return root * root;
  }

  void update_tensor(const Tensor& tensor, State& s, double factor) {
    ++s.count;
    const auto c = [&](double x) { return r(tensor, x); };
    const std::string optimizer = word("optimizer", "adamw");
    const double lr = number("lr", 1e-3) * tensor.lr_scale;
    const double decay = tensor.weight_decay >= 0 ? tensor.weight_decay : number("weight_decay", 0);
    const double b1 = number("beta1", 0.9);
    const double b2 = number("beta2", 0.999);
    const double eps = c(number("eps", 1e-8));
    const double mu = number("momentum", 0);
    const double correction1 = 1.0 - power(b1, s.count);
    const double correction2 = 1.0 - power(b2, s.count);
    const auto moments = [&](std::size_t i, double g) {
      s.m[i] = c(c(c(b1) * s.m[i]) + c(c(1.0 - b1) * g));
      s.v[i] = c(c(c(b2) * s.v[i]) + c(c(c(1.0 - b2) * g) * g));
    };
    const auto adam = [&](std::size_t i, double w, double g) {
      moments(i, g);
      const double root = c(c(std::sqrt(s.v[i])) / c(std::sqrt(correction2)));
      return c(w - c(c(c(lr / correction1) * s.m[i]) / c(root + eps)));
    };
    const auto lamb_update = [&](std::size_t i) {
      const double ratio = c(c(s.m[i] / c(correction1)) / c(c(std::sqrt(c(s.v[i] / c(correction2)))) + eps));
      return c(ratio + c(c(decay) * s.master[i]));
    };
    const bool wide_masters = word("master_weights", "on") == "on";
    const bool nesterov = word("nesterov", "off") == "on";
    const auto keep = [&](std::size_t i, double w) {
      s.master[i] = wide_masters ? w : rounded(tensor.dtype, w);
    };

    Quad weights = 0;
    Quad updates = 0;
    for (std::size_t i = 0; i < s.master.size(); ++i) {
      const double w = s.master[i];
      const double g = c(s.sum[i] * c(factor));
      const double l2 = c(g + c(c(decay) * w));
      if (optimizer == "adamw") keep(i, adam(i, c(w * c(1.0 - lr * decay)), g));
      if (optimizer == "adam") keep(i, adam(i, w, l2));
      if (optimizer == "sgd") {
        s.m[i] = s.count == 1 ? l2 : c(c(c(mu) * s.m[i]) + l2);
        const double ahead = c(l2 + c(c(mu) * s.m[i]));
        const double direction = mu == 0 ? l2 : nesterov ? ahead : s.m[i];
        keep(i, c(w - c(c(lr) * direction)));
      }
      if (optimizer == "lion") {
        const double direction = c(c(c(b1) * s.m[i]) + c(c(1.0 - b1) * g));
        const double change = direction > 0 ? c(lr) : direction < 0 ? -c(lr) : 0.0;
        keep(i, c(c(w * c(1.0 - lr * decay)) - change));
        s.m[i] = c(c(c(b2) * s.m[i]) + c(c(1.0 - b2) * g));
      }
      if (optimizer != "lamb") continue;
      moments(i, g);
      weights += static_cast<Quad>(w * w);
      updates += static_cast<Quad>(lamb_update(i) * lamb_update(i));
    }
    if (optimizer != "lamb") return;
    const double w = std::sqrt(static_cast<double>(weights));
    const double u = std::sqrt(static_cast<double>(updates));
    const double ratio = w > 0 && u > 0 ? w / u : 1.0;
    for (std::size_t i = 0; i < s.master.size(); ++i)
      keep(i, c(s.master[i] - c(c(lr * ratio) * lamb_update(i))));
  }

  const Problem& problem_;
  int ranks_, ranks_per_node_;
  std::vector<Tensor> tensors_;
  std::vector<State> states_;
  std::map<std::string, std::string> options_;
  double scale_ = 1;
  bool dynamic_ = false;
  int left_ = 0;
  int clean_ = 0;
};

}  // namespace

Result train_densely(const Problem& problem, int ranks, int ranks_per_node) {
  return DenseRun(problem, ranks, ranks_per_node).train();
}

}  // namespace equivalence
