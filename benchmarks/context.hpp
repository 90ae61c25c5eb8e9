// A context that ends by itself; a status that is not success ends the program with its words.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "gemini.h"
#include "ranks.hpp"

namespace gemini_bench {

inline void check(gemini_status_t status) {
  if (status == GEMINI_SUCCESS) return;
  std::fprintf(stderr, "%s: %s\n", gemini_status_string(status), gemini_last_error_message());
  MPI_Abort(MPI_COMM_WORLD, 2);
}

using Settings = std::vector<std::pair<std::string, std::string>>;
using Params = std::vector<gemini_param_t>;

class Context {
 public:
  explicit Context(const Settings& settings) {
    gemini_options_t options = nullptr;
    check(gemini_options_create(&options));
    for (const auto& [key, value] : settings) check(gemini_options_set(options, key.c_str(), value.c_str()));
    check(gemini_create(MPI_COMM_WORLD, options, &ctx_));
    check(gemini_options_destroy(&options));
  }
  ~Context() { check(gemini_destroy(&ctx_)); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  operator gemini_context_t() const { return ctx_; }

  // F32, all zero.
  Params add(int count, std::int64_t elems, std::int32_t flags = 0) {
    Params params;
    for (int i = 0; i < count; ++i) {
      const std::string name = (flags == 0 ? "w" : "r") + std::to_string(i);
      params.emplace_back();
      check(gemini_param_register(ctx_, name.c_str(), GEMINI_F32, 1, &elems, flags, &params.back()));
      check(gemini_param_init_fill(params.back(), GEMINI_INIT_ZEROS, 0, 0, 0));
    }
    return params;
  }

 private:
  gemini_context_t ctx_ = nullptr;
};

}  // namespace gemini_bench
