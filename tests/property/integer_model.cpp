#include "integer_model.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>

namespace property {
namespace {

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

double initial_value(int p, std::int64_t i) {
  return static_cast<double>(mix(static_cast<std::uint64_t>(p), static_cast<std::uint64_t>(i)) % 201) - 100;
}
double gradient_value(std::uint64_t ask, int rank, std::int64_t i) {
  return static_cast<double>(mix(ask, static_cast<std::uint64_t>(rank) + 1, static_cast<std::uint64_t>(i)) %
                             9) -
         4;
}
bool asks(std::uint64_t ask, int rank, unsigned mask) {
  return (mask >> rank & 1) != 0 && mix(ask, 77, static_cast<std::uint64_t>(rank)) % 3 != 0;
}

template <class T>
bool all_equal(const void* values, const std::vector<double>& expected) {
  const auto* typed = static_cast<const T*>(values);
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (typed[i] != static_cast<T>(expected[i])) return false;
  return true;
}

template <class T>
void add(void* gradient, std::int64_t count, std::int32_t accumulate, std::uint64_t ask, int rank) {
  auto* typed = static_cast<T*>(gradient);
  for (std::int64_t i = 0; i < count; ++i)
    typed[i] = (accumulate != 0 ? typed[i] : T(0)) + static_cast<T>(gradient_value(ask, rank, i));
}

gemini_test::KeyValues joined(gemini_test::KeyValues a, const gemini_test::KeyValues& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

Ranks world() {
  Ranks ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.size);
  return ranks;
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15U + b * 0xC2B2AE3D27D4EB4FU + c * 0x165667B19E3779F9U + 1;
  x = (x ^ x >> 31) * 0xBF58476D1CE4E5B9U;
  x = (x ^ x >> 27) * 0x94D049BB133111EBU;
  return x ^ x >> 31;
}

Recipe::Recipe(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto count = random() % 10 + 1;
  for (std::uint64_t t = 0; t < count; ++t) {
    const std::int64_t elems =
        random() % 9 == 0 ? 0 : static_cast<std::int64_t>(random() % (random() % 8 == 0 ? 5000 : 300));
    const int32_t frozen = random() % 6 == 0 ? GEMINI_PARAM_FROZEN : 0;
    const int32_t resident = random() % 5 == 0 ? GEMINI_PARAM_RESIDENT : 0;
    tensors.push_back({elems, random() % 4 == 0 ? GEMINI_F64 : GEMINI_F32, frozen | resident});
  }
  accumulate = static_cast<int>(random() % 3) + 1;
  momentum = random() % 2 == 0 ? 1 : 0;
  constexpr const char* kChunks[] = {"16", "64", "300", "0"};
  options = {{"optimizer", "sgd"},
             {"lr", "1"},
             {"momentum", momentum == 1 ? "1" : "0"},
             {"reduce_op", "sum"},
             {"timeout_s", "60"},
             {"chunk_elems", kChunks[random() % 4]},
             {"async_reduce", random() % 3 == 0 ? "off" : "on"},
             {"accumulate", std::to_string(accumulate)}};
}

bool ModelParam::may_ask() const {
  const bool backward = std::find(leases.begin(), leases.end(), GEMINI_BACKWARD) != leases.end();
  return trained() && backward && !ready;
}

IntegerModel::IntegerModel(const Recipe& recipe, const gemini_test::KeyValues& more, MPI_Comm comm,
                           std::int64_t other_bytes)
    : ctx_(comm, joined(recipe.options, more)),
      other_(ctx_, recipe.tensors.size(),
             recipe.tensors.size() % static_cast<std::size_t>(ranks_.size) ==
                     static_cast<std::size_t>(ranks_.rank)
                 ? other_bytes
                 : 0),
      momentum_(recipe.momentum),
      pause_(static_cast<std::uint64_t>(ranks_.rank)) {
  for (std::size_t t = 0; t < recipe.tensors.size(); ++t) {
    const int p = static_cast<int>(t);
    ModelParam param;
    param.tensor = recipe.tensors[t];
    param.handle = ctx_.add_function(
        "p" + std::to_string(p), param.tensor.dtype, {param.tensor.elems},
        [p](std::int64_t i) { return initial_value(p, i); }, param.tensor.flags);
    for (std::int64_t i = 0; i < param.tensor.elems; ++i) param.values.push_back(initial_value(p, i));
    param.gradient.resize(param.values.size());
    param.velocity.resize(param.values.size());
    params_.push_back(std::move(param));
  }
}

bool IntegerModel::commit() {
  const gemini_status_t status = gemini_commit(ctx_);
  if (status == GEMINI_ERR_OUT_OF_MEMORY) return false;
  gemini_test::check(status, "gemini_commit");
  gathered_at_rest_ = ctx_.stat(GEMINI_STAT_GATHERED_BYTES);
  return true;
}

gemini_test::Params IntegerModel::handles(const Which& which) const {
  gemini_test::Params handles;
  for (const int p : which) handles.push_back(params_[static_cast<std::size_t>(p)].handle);
  return handles;
}

void IntegerModel::begin_micro_batch() {
  for (ModelParam& param : params_) param.in_backward = param.ready = false;
}

void IntegerModel::maybe_pause() {
  if (pauses_ && pause_() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_() % 500));
}

bool IntegerModel::pre(gemini_phase_t phase, const Which& which) {
  maybe_pause();
  ctx_.phase(phase);
  const auto list = handles(which);
  const auto call = [&] { return gemini_pre_op(ctx_, list.data(), static_cast<int32_t>(list.size())); };
  other_.change();
  gemini_status_t status = call();
  if (status == GEMINI_ERR_OUT_OF_MEMORY && other_.give_back()) status = call();  // its own may be in the way
  if (status == GEMINI_ERR_OUT_OF_MEMORY) {
    ++refused_;
    return false;
  }
  gemini_test::check(status, "gemini_pre_op");
  if (phase == GEMINI_FORWARD && after_backward_) begin_micro_batch();
  if (phase == GEMINI_FORWARD) after_backward_ = false;
  if (phase == GEMINI_BACKWARD) after_backward_ = true;
  Which once = which;
  std::sort(once.begin(), once.end());
  once.erase(std::unique(once.begin(), once.end()), once.end());
  for (const int p : once) {
    ModelParam& param = params_[static_cast<std::size_t>(p)];
    param.leases.push_back(phase);
    if (phase == GEMINI_BACKWARD) param.in_backward = true, param.ready = false;
    check_leased(param);
  }
  return true;
}

void IntegerModel::check_leased(const ModelParam& param) const {
  void* values = nullptr;
  GEMINI_CHECK(gemini_param_data(param.handle, &values));
  require(reinterpret_cast<std::uintptr_t>(values) % 64 == 0, "data is not aligned to 64 bytes");
  require(param.tensor.dtype == GEMINI_F64 ? all_equal<double>(values, param.values)
                                           : all_equal<float>(values, param.values),
          "the gathered values are not the model's");
}

void IntegerModel::post(const Which& which) {
  maybe_pause();
  for (const int p : which) check_leased(params_[static_cast<std::size_t>(p)]);
  other_.change();
  ctx_.post(handles(which));
  Which once = which;
  std::sort(once.begin(), once.end());
  once.erase(std::unique(once.begin(), once.end()), once.end());
  for (const int p : once) params_[static_cast<std::size_t>(p)].leases.pop_back();
}

void IntegerModel::ask(int p, unsigned mask) {
  ModelParam& param = params_[static_cast<std::size_t>(p)];
  ++asks_;
  for (int rank = 0; rank < ranks_.size; ++rank) {
    if (!asks(asks_, rank, mask)) continue;
    param.asked = true;
    for (std::size_t i = 0; i < param.gradient.size(); ++i)
      param.gradient[i] += gradient_value(asks_, rank, static_cast<std::int64_t>(i));
  }
  if (!asks(asks_, ranks_.rank, mask)) return;
  void* gradient = nullptr;
  int32_t accumulate = 1;  // with NULL the buffer may always be added to
  GEMINI_CHECK(gemini_param_grad(param.handle, &gradient, asks_ % 2 == 0 ? &accumulate : nullptr));
  if (param.tensor.dtype == GEMINI_F64)
    add<double>(gradient, param.tensor.elems, accumulate, asks_, ranks_.rank);
  else
    add<float>(gradient, param.tensor.elems, accumulate, asks_, ranks_.rank);
}

void IntegerModel::declare_ready(int p) {
  GEMINI_CHECK(gemini_grad_ready(params_[static_cast<std::size_t>(p)].handle));
  params_[static_cast<std::size_t>(p)].ready = true;
}

void IntegerModel::local_operation(gemini_phase_t phase, int p, unsigned mask) {
  const bool here = (mask >> ranks_.rank & 1) != 0;
  ModelParam& param = params_[static_cast<std::size_t>(p)];
  const bool was_ready = param.ready;
  if (here) require(pre(phase, {p}), "a resident parameter asked for room");
  if (phase == GEMINI_BACKWARD && param.trained()) ask(p, mask);
  if (here) post({p});
  param.ready = was_ready;  // ranks differ: nobody declares or asks before the next common operation
}

// Workspaces of one rank may be in the way of what all ranks would do.
template <class Call>
gemini_status_t IntegerModel::agreed(Call&& call) {
  const gemini_status_t status = call();
  if (status != GEMINI_ERR_OUT_OF_MEMORY && status != GEMINI_ERR_REMOTE) return status;
  (void)other_.give_back();
  return call();
}

void IntegerModel::step() {
  maybe_pause();
  gemini_step_info_t info = GEMINI_STEP_INFO_INIT;
  gemini_test::check(agreed([&] { return gemini_step(ctx_, &info); }), "gemini_step");
  double squares = 0;
  int updated = 0;
  for (ModelParam& param : params_) {
    updated += param.asked ? 1 : 0;
    for (std::size_t i = 0; i < param.values.size(); ++i) {
      squares += param.gradient[i] * param.gradient[i];
      if (!param.asked) continue;
      param.velocity[i] = momentum_ * param.velocity[i] + param.gradient[i];
      param.values[i] -= param.velocity[i];
    }
  }
  require(info.step == ++steps_ && info.skipped == 0, "the step is not counted");
  require(info.params_updated == updated, "params_updated is " + std::to_string(info.params_updated) +
                                              " instead of " + std::to_string(updated));
  require(info.grad_norm == std::sqrt(squares), "the norm is not the model's");
  for (ModelParam& param : params_) {
    std::fill(param.gradient.begin(), param.gradient.end(), 0.0);
    param.asked = false;
  }
  begin_micro_batch();
  after_backward_ = false;
}

void IntegerModel::discard() {
  GEMINI_CHECK(gemini_discard(ctx_));
  for (ModelParam& param : params_) {
    std::fill(param.gradient.begin(), param.gradient.end(), 0.0);
    param.asked = false;
  }
  begin_micro_batch();
  after_backward_ = false;
}

bool IntegerModel::has_leases() const {
  return std::any_of(params_.begin(), params_.end(),
                     [](const ModelParam& param) { return !param.leases.empty(); });
}

void IntegerModel::check_values() {
  for (const ModelParam& param : params_)
    require(gemini_test::values(param.handle) == param.values, "the values are not the model's");
}

void IntegerModel::check_gradient(int p) {
  const ModelParam& param = params_[static_cast<std::size_t>(p)];
  std::vector<double> gradient(param.values.size());
  const gemini_status_t status =
      agreed([&] { return gemini_grad_get(param.handle, GEMINI_F64, gradient.data(), -1); });
  if (status == GEMINI_ERR_STATE && !param.asked) return;  // none is held
  if (status == GEMINI_ERR_ARGUMENT && !param.trained()) return;
  gemini_test::check(status, "gemini_grad_get");
  require(gradient == param.gradient, "the gradient is not the model's");
}

void IntegerModel::check_quiet_stats() {
  require(ctx_.stat(GEMINI_STAT_LEASES) == 0, "leases are left");
  require(ctx_.stat(GEMINI_STAT_GATHERED_BYTES) == gathered_at_rest_, "gathered chunks are left");
}

}  // namespace property
