// Handles, registration and queries used wrongly.
#include "misuse/refused.hpp"

using namespace gemini_test;

namespace {

const int64_t kShape[2] = {2, 4};

}  // namespace

TEST(Create, RefusesWrongCommunicatorsAndPointers) {
  gemini_context_t ctx = nullptr;
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_create(MPI_COMM_WORLD, nullptr, nullptr), "ctx is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_create(MPI_COMM_NULL, nullptr, &ctx), "MPI_COMM_NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_create_f(MPI_Comm_c2f(MPI_COMM_NULL), nullptr, &ctx), "MPI_COMM_NULL");
  EXPECT_EQ(nullptr, ctx);
  if (ranks_of() < 2) return;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm inter = MPI_COMM_NULL;
  const int side = rank_of() == 0 ? 0 : 1;
  MPI_Comm_split(MPI_COMM_WORLD, side, rank_of(), &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 0, &inter);
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_create(inter, nullptr, &ctx), "intercommunicator");
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

TEST(Register, RefusesEachWrongArgumentByNameAndValue) {
  Context ctx;
  gemini_param_t p = nullptr;
  const std::string longest(255, 'n');
  const std::string too_long(256, 'n');
  const int64_t negative[2] = {2, -4};
  const int64_t ones[33] = {};
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(nullptr, "w", GEMINI_F32, 2, kShape, 0, &p),
          "ctx is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, nullptr, GEMINI_F32, 2, kShape, 0, &p),
          "name is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, "", GEMINI_F32, 2, kShape, 0, &p), "name",
          "0 bytes", "1 to 255");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, too_long.c_str(), GEMINI_F32, 2, kShape, 0, &p),
          "256 bytes");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, "w", gemini_dtype_t(0), 2, kShape, 0, &p),
          "dtype is 0", "1 to 6");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, "w", gemini_dtype_t(7), 2, kShape, 0, &p),
          "dtype is 7");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, "w", GEMINI_F32, -1, kShape, 0, &p), "ndim is -1",
          "0 to 32");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, "w", GEMINI_F32, 33, ones, 0, &p), "ndim is 33");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, "w", GEMINI_F32, 2, nullptr, 0, &p),
          "shape is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, "w", GEMINI_F32, 2, negative, 0, &p),
          "shape[1] is -4");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, "w", GEMINI_F32, 2, kShape, 8, &p), "flags 8",
          "_IGNORED");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, "w", GEMINI_I32, 2, kShape, 0, &p), "\"w\"",
          "GEMINI_PARAM_IGNORED");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, "w", GEMINI_F32, 2, kShape, 0, nullptr),
          "param is NULL");
  EXPECT_EQ(nullptr, p);
  REFUSED(GEMINI_ERR_NOT_FOUND, gemini_param_at(ctx, 0, &p), "index is 0",
          "0 parameters");  // nothing was added
  EXPECT_EQ(GEMINI_SUCCESS, gemini_param_register(ctx, longest.c_str(), GEMINI_F32, 2, kShape, 0, &p));
  EXPECT_EQ(longest, info(p).name);
  EXPECT_EQ(GEMINI_SUCCESS, gemini_param_register(ctx, "deep", GEMINI_F32, 32, ones, 0, &p));
}

TEST(Register, RefusesNamesThatAreTaken) {
  Context ctx;
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {4}, 0);
  gemini_param_t p = w;
  EXPECT_EQ(GEMINI_SUCCESS, gemini_param_alias(ctx, "also_w", w));
  REFUSED(GEMINI_ERR_DUPLICATE, gemini_param_register(ctx, "w", GEMINI_F32, 2, kShape, 0, &p), "\"w\"");
  EXPECT_EQ(nullptr, p);
  REFUSED(GEMINI_ERR_DUPLICATE, gemini_param_register(ctx, "also_w", GEMINI_F32, 2, kShape, 0, &p),
          "\"also_w\"");
  REFUSED(GEMINI_ERR_DUPLICATE, gemini_param_alias(ctx, "w", w), "\"w\"");
  REFUSED(GEMINI_ERR_DUPLICATE, gemini_param_alias(ctx, "also_w", w), "\"also_w\"");
}

TEST(Alias, RefusesWrongNamesAndForeignParameters) {
  Context ctx;
  Context other;
  gemini_param_t theirs = other.add_constant("theirs", GEMINI_F32, {4}, 0);
  gemini_param_t mine = ctx.add_constant("mine", GEMINI_F32, {4}, 0);
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_alias(ctx, nullptr, mine), "name is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_alias(ctx, "a", nullptr), "param is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_alias(ctx, "", mine), "0 bytes");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_alias(ctx, "a", theirs), "\"theirs\"", "another context");
  gemini_param_t found = nullptr;
  REFUSED(GEMINI_ERR_NOT_FOUND, gemini_param_find(ctx, "a", &found), "\"a\"");
}

TEST(Queries, RefuseWhatIsNotThere) {
  Context ctx;
  gemini_param_t w = ctx.add_constant("weights", GEMINI_F32, {4}, 0);
  gemini_param_t p = w;
  REFUSED(GEMINI_ERR_NOT_FOUND, gemini_param_find(ctx, "weight", &p), "\"weight\"", "did you mean weights");
  EXPECT_EQ(nullptr, p);
  p = w;
  REFUSED(GEMINI_ERR_NOT_FOUND, gemini_param_at(ctx, 1, &p), "index is 1", "1 parameters");
  EXPECT_EQ(nullptr, p);
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_at(ctx, -1, &p), "index is -1");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_at(ctx, 0, nullptr), "param is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_find(ctx, nullptr, &p), "name is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_info(w, nullptr), "info is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_info(nullptr, nullptr), "param is NULL");
  int64_t value = 5;
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_stat(ctx, gemini_stat_t(0), &value), "which is 0", "1 to 27");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_stat(ctx, gemini_stat_t(28), &value), "which is 28");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_stat(ctx, GEMINI_STAT_STEPS, nullptr), "value is NULL");
  EXPECT_EQ(5, value);
  char text[4] = "abc";
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_get_option(ctx, "optimizer", text, 4), "capacity is 4", "6 bytes");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_get_option(ctx, "optimise", text, 4), "optimizer");
  REFUSED(GEMINI_ERR_NOT_FOUND, gemini_get_option(ctx, "user.x", text, 4), "user.x");
  EXPECT_STREQ("abc", text);
}

TEST(Structs, OfAWrongSizeAreRefusedAndShorterOnesFilledAsFarAsTheyGo) {
  Context ctx;
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {4}, 0);
  gemini_param_info_t what = GEMINI_PARAM_INFO_INIT;
  for (const int64_t size : {int64_t{0}, int64_t{-8}, int64_t{1} << 40}) {
    what.struct_size = size;
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_info(w, &what), "struct_size is " + std::to_string(size),
            "_INIT");
  }
  gemini_topology_t where = GEMINI_TOPOLOGY_INIT;
  where.struct_size = 3;
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_topology(ctx, &where), "struct_size is 3");
  where.struct_size = 16;  // of a program that knew rank and ranks alone
  where.node_ranks = -5;
  EXPECT_EQ(GEMINI_SUCCESS, gemini_topology(ctx, &where));
  EXPECT_EQ(ranks_of(), where.ranks);
  EXPECT_EQ(-5, where.node_ranks);
  EXPECT_EQ(16, where.struct_size);
}

TEST(Initialisers, RefuseWrongRulesAndIgnoredParameters) {
  Context ctx;
  gemini_param_t w = ctx.add("w", GEMINI_F32, {4});
  gemini_param_t mine = ctx.add("mine", GEMINI_F32, {4}, GEMINI_PARAM_IGNORED);
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_init_fill(nullptr, GEMINI_INIT_ZEROS, 0, 0, 0), "param is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_init_fill(w, gemini_init_t(0), 0, 0, 0), "kind is 0", "1 to 6");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_init_fill(w, gemini_init_t(7), 0, 0, 0), "kind is 7");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_init_fill(w, GEMINI_INIT_CONSTANT, NAN, 0, 0), "nan", "finite");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_init_fill(w, GEMINI_INIT_UNIFORM, 2, 1, 0), "a = 2", "b = 1");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_init_fill(w, GEMINI_INIT_NORMAL, 0, -1, 0), "-1");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_init_fill(mine, GEMINI_INIT_ZEROS, 0, 0, 0), "\"mine\"",
          "IGNORED");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_init_function(w, nullptr, nullptr), "fn is NULL");
  if (rank_of() == 0) {
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_init_data(w, nullptr), "host_values is NULL");
  }
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_attach(w, &ctx), "\"w\"", "GEMINI_PARAM_IGNORED");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_attach(mine, nullptr), "data is NULL");
  REFUSED(GEMINI_ERR_STATE, gemini_commit(ctx), "\"w\"");  // none of these counted
}

TEST(ParameterOptions, RefuseUnknownKeysAndValues) {
  Context ctx;
  gemini_param_t w = ctx.add_constant("w", GEMINI_F16, {4}, 0);
  gemini_param_t mine = ctx.add("mine", GEMINI_F32, {4}, GEMINI_PARAM_IGNORED);
  const auto refuse_all = [&] {
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_set_option(w, "lr", "1"), "\"lr\"",
            "lr_scale, weight_decay, frozen, grad_dtype");
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_set_option(w, "lr_scale", "-1"), "lr_scale = \"-1\"", ">= 0");
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_set_option(w, "weight_decay", "some"), "\"some\"");
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_set_option(w, "frozen", "yes"), "\"yes\"", "on, off");
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_set_option(w, "grad_dtype", "f64"), "\"f64\"", "f32, same");
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_set_option(w, nullptr, "1"), "key is NULL");
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_set_option(w, "frozen", nullptr), "value is NULL");
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_set_option(mine, "lr_scale", "1"), "\"mine\"", "IGNORED");
  };
  refuse_all();
  ctx.commit();
  refuse_all();
  REFUSED(GEMINI_ERR_STATE, gemini_param_set_option(w, "grad_dtype", "f32"), "\"w\"", "gemini_commit");
}
