// Bit for bit: every optimizer, dtype and option of the list, run in every way of the list, is the plain
// computation.
#include <cmath>
#include <cstring>

#include "model.hpp"
#include "narrow.hpp"
#include "support/rank_assert.hpp"

namespace equivalence {
namespace {

using Types = std::vector<gemini_dtype_t>;

const std::vector<Problem>& problems() {
  static const std::vector<Problem> all = {
      {"adamw_f32", {{"lr", "0.01"}, {"weight_decay", "0.1"}}, {GEMINI_F32}},
      {"adamw_f64_clip", {{"lr", "0.01"}, {"max_grad_norm", "0.5"}}, {GEMINI_F64}},
      {"adam_f32", {{"optimizer", "adam"}, {"lr", "0.01"}, {"weight_decay", "0.1"}}, {GEMINI_F32}},
      {"adam_f64_accumulate", {{"optimizer", "adam"}, {"lr", "0.01"}}, {GEMINI_F64}, 3},
      {"sgd_f32", {{"optimizer", "sgd"}, {"lr", "0.1"}, {"weight_decay", "0.1"}}, {GEMINI_F32}},
      {"sgd_nesterov_f64",
       {{"optimizer", "sgd"},
        {"lr", "0.1"},
        {"momentum", "0.9"},
        {"nesterov", "on"},
        {"weight_decay", "0.1"}},
       {GEMINI_F64}},
      {"sgd_momentum_inf_norm_f32",
       {{"optimizer", "sgd"},
        {"lr", "0.1"},
        {"momentum", "0.9"},
        {"max_grad_norm", "0.2"},
        {"grad_norm", "inf"}},
       {GEMINI_F32}},
      {"lion_f32", {{"optimizer", "lion"}, {"lr", "0.01"}, {"weight_decay", "0.1"}}, {GEMINI_F32}},
      {"lamb_f32_clip",
       {{"optimizer", "lamb"}, {"lr", "0.01"}, {"weight_decay", "0.1"}, {"max_grad_norm", "1"}},
       {GEMINI_F32}},
      {"lamb_f64", {{"optimizer", "lamb"}, {"lr", "0.01"}}, {GEMINI_F64}},
      {"adamw_f16_loss_scale",
       {{"lr", "0.01"}, {"initial_scale", "262144"}, {"growth_interval", "5"}, {"max_grad_norm", "0.5"}},
       {GEMINI_F16}},
      {"adamw_bf16_clip_accumulate", {{"lr", "0.01"}, {"max_grad_norm", "1"}}, {GEMINI_BF16}, 3},
      {"sgd_bf16_no_masters",
       {{"optimizer", "sgd"}, {"lr", "0.1"}, {"momentum", "0.5"}, {"master_weights", "off"}},
       {GEMINI_BF16}},
      {"adamw_mixed_accumulate",
       {{"lr", "0.01"}, {"weight_decay", "0.1"}, {"initial_scale", "1024"}, {"max_grad_norm", "2"}},
       {GEMINI_F32, GEMINI_F64, GEMINI_BF16, GEMINI_F32, GEMINI_F16},
       3},
  };
  return all;
}

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"searched chunks", {{"chunk_elems", "0"}}},
      {"chunks of 16", {{"chunk_elems", "16"}}},
      {"chunks of 64", {{"chunk_elems", "64"}}},
      {"over MPI", {{"chunk_elems", "64"}, {"collectives", "mpi"}}},
      {"over MPI, some resident", {{"chunk_elems", "200"}, {"collectives", "mpi"}}, Variant::some_resident},
      {"chunks of 1000", {{"chunk_elems", "1000"}}},
      {"reduced at once", {{"chunk_elems", "64"}, {"async_reduce", "off"}}},
      {"resident", {{"chunk_elems", "64"}}, Variant::all_resident},
      {"some resident, declared ready", {{"chunk_elems", "200"}}, Variant::some_resident, true},
      {"declared ready, reduced at once",
       {{"chunk_elems", "16"}, {"async_reduce", "off"}},
       Variant::sharded,
       true},
      {"offloaded, fetched ahead",
       {{"chunk_elems", "64"},
        {"placement", "static"},
        {"offload_param_frac", "1"},
        {"offload_optim_frac", "1"},
        {"prefetch", "3"}}},
      {"half of all offloaded, half kept gathered",
       {{"chunk_elems", "16"},
        {"placement", "static"},
        {"offload_param_frac", "0.5"},
        {"offload_optim_frac", "0.5"},
        {"shard_param_frac", "0.5"}}},
      {"auto in little memory", {{"chunk_elems", "200"}, {"device_memory", "96KiB"}, {"prefetch", "1"}}},
      {"planned in little memory",
       {{"chunk_elems", "200"}, {"placement", "planned"}, {"device_memory", "96KiB"}}},
      {"over nodes of two ranks",
       {{"chunk_elems", "64"}, {"collectives", "shared:2"}},
       Variant::some_resident,
       false,
       2},
      {"over nodes of two ranks, offloaded",
       {{"chunk_elems", "64"},
        {"collectives", "shared:2"},
        {"placement", "static"},
        {"offload_param_frac", "1"},
        {"prefetch", "2"}},
       Variant::sharded,
       false,
       2},
      {"spilled to files",
       {{"chunk_elems", "200"}, {"device_memory", "128KiB"}, {"host_memory", "256KiB"}, {"spill_dir", "."}}},
      {"planned, spilled to files",
       {{"chunk_elems", "1000"},
        {"placement", "planned"},
        {"device_memory", "160KiB"},
        {"host_memory", "256KiB"},
        {"spill_dir", "."}},
       Variant::some_resident},
  };
  return all;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

std::string first_difference(const Result& a, const Result& b) {
  for (std::size_t s = 0; s < a.norms.size(); ++s)
    if (a.norms[s] != b.norms[s] && !(std::isnan(a.norms[s]) && std::isnan(b.norms[s])))
      return "norm of step " + std::to_string(s) + ": " + std::to_string(a.norms[s]) + " and " +
             std::to_string(b.norms[s]);
  for (std::size_t t = 0; t < a.values.size(); ++t)
    for (std::size_t i = 0; i < a.values[t].size(); ++i)
      if (a.values[t][i] != b.values[t][i])
        return "tensor " + std::to_string(t) + "[" + std::to_string(i) +
               "]: " + std::to_string(a.values[t][i]) + " and " + std::to_string(b.values[t][i]);
  return "none in values and norms";
}

class Equivalence : public testing::TestWithParam<Problem> {};

TEST_P(Equivalence, EveryWayGivesTheBitsOfThePlainComputation) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const Result on_one_node = train_densely(GetParam(), ranks, ranks);
  const Result on_nodes_of_two = train_densely(GetParam(), ranks, 2);
  for (const Variant& variant : variants()) {
    const Result& dense = variant.ranks_per_node == 2 ? on_nodes_of_two : on_one_node;
    const Result result = train_with_library(GetParam(), variant);
    bool same = result.skipped == dense.skipped && result.updated == dense.updated;
    for (std::size_t s = 0; s < dense.norms.size(); ++s)
      same = same && (dense.skipped[s] != 0 || result.norms[s] == dense.norms[s]);
    for (std::size_t t = 0; t < dense.values.size(); ++t)
      same = same && same_bits(result.values[t], dense.values[t]);
    ASSERT_ALL(MPI_COMM_WORLD, same) << variant.name << ": library and plain differ first in "
                                     << first_difference(result, dense);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Equivalence, testing::ValuesIn(problems()),
                         [](const auto& problem) { return problem.param.name; });

// The problems do what they are for.
TEST(Problems, MoveSkipAndLeaveAlone) {
  for (const Problem& problem : problems()) {
    const Result result = train_densely(problem, 2, 2);
    const auto tensors = tensors_of(problem);
    for (std::size_t t = 0; t < tensors.size(); ++t)
      for (std::size_t i = 0; i < result.values[t].size(); ++i) {
        const double start = initial_value(static_cast<int>(t), static_cast<std::int64_t>(i));
        if (tensors[t].frozen) {
          EXPECT_EQ(result.values[t][i], start);
        }
        EXPECT_TRUE(std::isfinite(result.values[t][i])) << problem.name;
      }
    EXPECT_NE(result.values[0][0], initial_value(0, 0)) << problem.name;
    int skipped = 0;
    for (const int step : result.skipped) skipped += step;
    EXPECT_EQ(skipped > 0, problem.name == "adamw_f16_loss_scale") << problem.name << " skips " << skipped;
    EXPECT_LT(skipped, kSteps / 2) << problem.name;
  }
}

TEST(Narrow, IsRoundToNearestEven) {
  EXPECT_EQ(rounded(GEMINI_F16, 65519.0), 65504.0);
  EXPECT_EQ(rounded(GEMINI_F16, 65520.0), INFINITY);
  EXPECT_EQ(rounded(GEMINI_F16, 2049.0), 2048.0);
  EXPECT_EQ(rounded(GEMINI_F16, 2051.0), 2052.0);
  EXPECT_EQ(rounded(GEMINI_BF16, 257.0), 256.0);
  EXPECT_EQ(bits_of(GEMINI_F16, 1.0), 0x3C00);
  EXPECT_EQ(bits_of(GEMINI_BF16, -1.0), 0xBF80);
  for (int bits = 0; bits < 0x10000; ++bits)
    for (const gemini_dtype_t type : {GEMINI_F16, GEMINI_BF16}) {
      const double value = value_of(type, static_cast<std::uint16_t>(bits));
      if (std::isnan(value)) continue;
      ASSERT_EQ(bits_of(type, value), bits) << bits;
      ASSERT_EQ(rounded(type, value), value);
    }
}

}  // namespace
}  // namespace equivalence
