// How a run is placed and travels, drawn at random; equal on all ranks. Whatever is drawn, numbers are the
// same.
#pragma once

#include "integer_model.hpp"

namespace property {

struct Settings {
  // at_rest_bytes: what a rank holds of this model without any limit. spill_dir: "" for none.
  Settings(std::uint64_t seed, std::int64_t at_rest_bytes, const std::string& spill_dir);

  gemini_test::KeyValues options;
  std::int64_t device_memory = -1;  // -1: auto
  std::int64_t host_memory = -1;
  bool slow_ranks = false;  // each pauses now and then

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  const char* one_of(std::initializer_list<const char*> words) { return words.begin()[draw(words.size())]; }
  void draw_policy();
  void draw_budgets(std::int64_t at_rest_bytes, const std::string& spill_dir);
  void draw_ways();

  std::mt19937_64 random_;
};

}  // namespace property
