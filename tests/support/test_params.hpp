// Parameters with less to write, for C++ tests (test_context.hpp includes this): a status that is not success
// throws, and GoogleTest then fails the test. Written against gemini.h alone.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gemini.h"

namespace gemini_test {

inline void check(gemini_status_t status, const std::string& call) {
  if (status == GEMINI_SUCCESS) return;
  throw std::runtime_error(call + ": " + gemini_status_string(status) + ": " + gemini_last_error_message());
}
#define GEMINI_CHECK(call) ::gemini_test::check(call, #call)

using ElementFn = std::function<double(int64_t index)>;

inline gemini_param_info_t info(gemini_param_t param) {
  gemini_param_info_t what = GEMINI_PARAM_INFO_INIT;
  GEMINI_CHECK(gemini_param_info(param, &what));
  return what;
}
inline int64_t elems(gemini_param_t param) {
  return info(param).elems;
}

// In a lease.
template <class T>
const T* data(gemini_param_t param) {
  void* values = nullptr;
  GEMINI_CHECK(gemini_param_data(param, &values));
  return static_cast<const T*>(values);
}
// In a BACKWARD lease; cleared at first touch.
template <class T>
T* grad(gemini_param_t param) {
  void* values = nullptr;
  GEMINI_CHECK(gemini_param_grad(param, &values, nullptr));
  return static_cast<T*>(values);
}
template <class T>
void add_grad_as(gemini_param_t param, const ElementFn& fn) {
  T* into = grad<T>(param);
  const int64_t count = elems(param);
  for (int64_t i = 0; i < count; ++i) into[i] += static_cast<T>(fn(i));
}
// In a BACKWARD lease: adds fn(i) to each element of an F64 or F32 gradient.
inline void add_grad(gemini_param_t param, const ElementFn& fn) {
  switch (info(param).dtype) {
    case GEMINI_F64: return add_grad_as<double>(param, fn);
    case GEMINI_F32: return add_grad_as<float>(param, fn);
    default: throw std::logic_error("add_grad: F64 and F32 only");
  }
}

// Agreed: the master values, the reduced gradient, as doubles on every rank.
inline std::vector<double> values(gemini_param_t param) {
  std::vector<double> all(static_cast<std::size_t>(elems(param)));
  GEMINI_CHECK(gemini_param_get(param, GEMINI_F64, all.data(), -1));
  return all;
}
inline std::vector<double> gradient(gemini_param_t param) {
  std::vector<double> all(static_cast<std::size_t>(elems(param)));
  GEMINI_CHECK(gemini_grad_get(param, GEMINI_F64, all.data(), -1));
  return all;
}

}  // namespace gemini_test
