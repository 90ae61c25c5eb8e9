// The C API with less to write, for C++ tests: handles end by themselves and a status that is not success
// throws (GoogleTest then fails the test). Written against gemini.h alone.
//
//   Context ctx{{"optimizer", "sgd"}, {"lr", "0.5"}};                                // on MPI_COMM_WORLD
//   gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {3, 4}, 1.0);
//   gemini_param_t b = ctx.add_function("b", GEMINI_F32, {4}, [](int64_t i) { return 0.1 * i; });
//   ctx.commit();
//   ctx.op(GEMINI_FORWARD, {w, b}, [&] { use(gemini_test::data<double>(w)); });
//   ctx.op(GEMINI_BACKWARD, {w, b}, [&] { add_grad(w, [](int64_t i) { return 1.0 * i; }); });
//   gemini_step_info_t info = ctx.step();
//   std::vector<double> now = values(w);                                           // on every rank
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "gemini.h"
#include "support/test_params.hpp"

namespace gemini_test {

using KeyValues = std::vector<std::pair<std::string, std::string>>;
using KeyValueList = std::initializer_list<std::pair<std::string, std::string>>;
using Params = std::vector<gemini_param_t>;
using Body = std::function<void()>;

class Options {
 public:
  Options() { GEMINI_CHECK(gemini_options_create(&opts_)); }
  Options(KeyValueList settings) : Options(KeyValues(settings)) {}
  explicit Options(const KeyValues& settings) : Options() {
    for (const auto& [key, value] : settings) set(key, value);
  }
  ~Options() { (void)gemini_options_destroy(&opts_); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  void set(const std::string& key, const std::string& value) {
    check(gemini_options_set(opts_, key.c_str(), value.c_str()), "gemini_options_set(" + key + ")");
  }
  [[nodiscard]] gemini_options_t get() const { return opts_; }

 private:
  gemini_options_t opts_ = nullptr;
};

class Context {
 public:
  Context() : Context(MPI_COMM_WORLD) {}
  Context(KeyValueList settings) : Context(MPI_COMM_WORLD, settings) {}
  explicit Context(MPI_Comm comm, const KeyValues& settings = {}) {
    const Options opts(settings);
    GEMINI_CHECK(gemini_create(comm, opts.get(), &ctx_));
  }
  // A test that fails on this rank tells the others, so that they do not wait for it.
  ~Context() {
    if (ctx_ == nullptr) return;
    const bool failed = std::uncaught_exceptions() > 0 || ::testing::Test::HasFatalFailure();
    if (failed) (void)gemini_abort(ctx_, "the test failed on this rank");
    const gemini_status_t status = gemini_destroy(&ctx_);
    if (status > 0 && !failed) ADD_FAILURE() << "gemini_destroy: " << gemini_last_error_message();
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] gemini_context_t get() const { return ctx_; }
  operator gemini_context_t() const { return ctx_; }
  gemini_status_t destroy() { return gemini_destroy(&ctx_); }

  // Registered without initialiser.
  gemini_param_t add(const std::string& name, gemini_dtype_t dtype, const std::vector<int64_t>& shape,
                     int32_t flags = 0) {
    gemini_param_t param = nullptr;
    check(gemini_param_register(ctx_, name.c_str(), dtype, static_cast<int32_t>(shape.size()), shape.data(),
                                flags, &param),
          "gemini_param_register(" + name + ")");
    return param;
  }
  // Every element the same; any floating dtype.
  gemini_param_t add_constant(const std::string& name, gemini_dtype_t dtype,
                              const std::vector<int64_t>& shape, double constant, int32_t flags = 0) {
    gemini_param_t param = add(name, dtype, shape, flags);
    GEMINI_CHECK(gemini_param_init_fill(param, GEMINI_INIT_CONSTANT, constant, 0, 0));
    return param;
  }
  // Element i is fn(i); F64 and F32.
  gemini_param_t add_function(const std::string& name, gemini_dtype_t dtype,
                              const std::vector<int64_t>& shape, const ElementFn& fn, int32_t flags = 0) {
    gemini_param_t param = add(name, dtype, shape, flags);
    init_functions_.push_back({dtype, fn});
    GEMINI_CHECK(gemini_param_init_function(param, &Context::fill, &init_functions_.back()));
    return param;
  }
  void commit() { GEMINI_CHECK(gemini_commit(ctx_)); }

  void phase(gemini_phase_t phase) { GEMINI_CHECK(gemini_set_phase(ctx_, phase)); }
  void pre(const Params& params) {
    GEMINI_CHECK(gemini_pre_op(ctx_, params.data(), static_cast<int32_t>(params.size())));
  }
  void post(const Params& params) {
    GEMINI_CHECK(gemini_post_op(ctx_, params.data(), static_cast<int32_t>(params.size())));
  }
  // One operation: pre_op, body, post_op.
  void op(
      gemini_phase_t in, const Params& params, const Body& body = [] {}) {
    phase(in);
    pre(params);
    body();
    post(params);
  }
  // One micro-batch over all parameters named: forward, then backward adding fn(i) to each gradient.
  void micro_batch(const Params& params, const ElementFn& gradient_of) {
    op(GEMINI_FORWARD, params);
    op(GEMINI_BACKWARD, params, [&] {
      for (gemini_param_t param : params) add_grad(param, gradient_of);
    });
  }
  gemini_step_info_t step() {
    gemini_step_info_t done = GEMINI_STEP_INFO_INIT;
    GEMINI_CHECK(gemini_step(ctx_, &done));
    return done;
  }

  [[nodiscard]] int64_t stat(gemini_stat_t which) const {
    int64_t value = 0;
    GEMINI_CHECK(gemini_stat(ctx_, which, &value));
    return value;
  }
  [[nodiscard]] std::string option(const std::string& key) const {
    char value[256] = "";
    check(gemini_get_option(ctx_, key.c_str(), value, sizeof value), "gemini_get_option(" + key + ")");
    return value;
  }

 private:
  struct InitFunction {
    gemini_dtype_t dtype;
    ElementFn fn;
  };
  static int fill(void* user, int64_t first_elem, int64_t count_elems, void* values) {
    const auto& init = *static_cast<const InitFunction*>(user);
    if (init.dtype != GEMINI_F64 && init.dtype != GEMINI_F32) return 1;
    for (int64_t i = 0; i < count_elems; ++i) {
      const double value = init.fn(first_elem + i);
      if (init.dtype == GEMINI_F64) static_cast<double*>(values)[i] = value;
      if (init.dtype == GEMINI_F32) static_cast<float*>(values)[i] = static_cast<float>(value);
    }
    return 0;
  }

  gemini_context_t ctx_ = nullptr;
  std::list<InitFunction> init_functions_;  // addresses stay until commit
};

}  // namespace gemini_test
