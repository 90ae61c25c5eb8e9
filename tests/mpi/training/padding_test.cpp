// What lies between parameters and behind the last: no call shows it, and nothing may creep in.
#include <cstring>
#include <string>
#include <vector>

#include "capi/guard.hpp"
#include "support/rank_assert.hpp"
#include "support/test_context.hpp"

namespace {

using namespace gemini_test;

// Bytes of an array that belong to no parameter.
std::int64_t pad_bytes(const gemini::Chunk& chunk, gemini::Item item, bool* all_zero) {
  const std::int64_t size = gemini::size_of(chunk.dtype_of(item));
  std::vector<bool> owned(static_cast<std::size_t>(chunk.spec.shard_elems));
  for (const gemini::ShardPiece& piece : chunk.pieces)
    for (std::int64_t i = 0; i < piece.count_elems; ++i)
      owned[static_cast<std::size_t>(piece.offset_in_shard + i)] = true;
  const std::byte* data = chunk.item(item).data();
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < owned.size(); ++i) {
    if (owned[i]) continue;
    bytes += size;
    for (std::int64_t b = 0; b < size; ++b)
      *all_zero = *all_zero && data[static_cast<std::int64_t>(i) * size + b] == std::byte{0};
  }
  return bytes;
}

TEST(Padding, StaysZeroThroughManyStepsWithDecay) {
  for (const std::string optimizer : {"adamw", "adam", "lamb", "sgd"}) {
    gemini_test::Context ctx(MPI_COMM_WORLD, {{"optimizer", optimizer},
                                              {"lr", "0.01"},
                                              {"weight_decay", "0.1"},
                                              {"momentum", "0.5"},
                                              {"chunk_elems", "16"}});
    Params all;
    for (const int64_t n : {1, 7, 21, 49})
      all.push_back(ctx.add_constant("w" + std::to_string(n), GEMINI_F32, {n}, 1.0));
    ctx.commit();
    for (int step = 0; step < 100; ++step) {
      ctx.micro_batch(all, [step](int64_t i) { return 0.25 * static_cast<double>((i + step) % 5) - 0.5; });
      ctx.step();
    }
    using gemini::Item;
    std::int64_t pads = 0;
    for (const gemini::Chunk& chunk : ctx.get()->context->trainer().store().chunks())
      for (const Item item : {Item::param, Item::master, Item::grad_sum, Item::state1, Item::state2}) {
        if (!chunk.item(item)) continue;
        bool all_zero = true;
        pads += pad_bytes(chunk, item, &all_zero);
        EXPECT_TRUE(all_zero) << optimizer << ", chunk " << chunk.index << ", array "
                              << static_cast<int>(item);
      }
    EXPECT_ALL(MPI_COMM_WORLD, pads > 0);
  }
}

}  // namespace
