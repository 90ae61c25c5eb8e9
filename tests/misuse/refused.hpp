// REFUSED(status, call, words...): the call returns status, and its message begins with the function's name
// and contains each of the words.
#pragma once

#include <initializer_list>
#include <string>

#include "cases/observe.hpp"

namespace gemini_test {

inline ::testing::AssertionResult refused(gemini_status_t expected, gemini_status_t actual,
                                          const std::string& call, std::initializer_list<std::string> words) {
  const std::string message = gemini_last_error_message();
  if (actual != expected)
    return ::testing::AssertionFailure() << gemini_status_string(actual) << " instead of "
                                         << gemini_status_string(expected) << ": \"" << message << "\"";
  const std::string function = call.substr(0, call.find('('));
  if (message.rfind(function + ": ", 0) != 0)
    return ::testing::AssertionFailure() << "the message does not begin with the function: " << message;
  for (const std::string& word : words)
    if (message.find(word) == std::string::npos)
      return ::testing::AssertionFailure() << "\"" << word << "\" is not in: " << message;
  return ::testing::AssertionSuccess();
}

}  // namespace gemini_test

#define REFUSED(status, call, ...) \
  EXPECT_TRUE(::gemini_test::refused(status, call, #call, std::initializer_list<std::string>{__VA_ARGS__}))
