#include "training/timeline_file.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/timeline_text.hpp"
#include "memory/new_file.hpp"

namespace gemini {
namespace {

constexpr const char* kWhat = "the timelines of all ranks";

// The text of each rank, one after the other, given to rank 0 a piece at a time.
template <class Take>
void for_each_piece_of_all(Ranks& ranks, const std::string& mine, Take&& take) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  const int here = ranks.topology().rank;
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks.topology().ranks));
  bytes[static_cast<std::size_t>(here)] = static_cast<std::int64_t>(mine.size());
  ranks.agreement().all_reduce(MPI_MAX, bytes, kWhat);
  for (int rank = 0; rank < ranks.topology().ranks; ++rank) {
    if (rank > 0) take(",\n");
    const std::int64_t all = bytes[static_cast<std::size_t>(rank)];
    for (std::int64_t done = 0; done < all; done += kPiece) {
      const std::int64_t count = std::min(kPiece, all - done);
      std::string piece;
      if (here == rank) piece = mine.substr(static_cast<std::size_t>(done), static_cast<std::size_t>(count));
      if (rank > 0) piece = ranks.agreement().relay(piece, count, rank, 0, kWhat);
      take(piece);
    }
  }
}

}  // namespace

void write_timelines(Ranks& ranks, const Timeline* timeline, const char* path) {
  std::unique_ptr<NewFile> file;  // on rank 0
  std::string mine;
  ranks.agreement().agree(Call::trace_write, "", [&] {
    if (timeline == nullptr)
      fail(GEMINI_ERR_STATE, "option trace = off: nothing was recorded; gemini_create with trace = on");
    if (path == nullptr) fail(GEMINI_ERR_ARGUMENT, "path is NULL");
    mine = text_of(*timeline, ranks.topology().rank);
    if (ranks.topology().rank == 0) file = std::make_unique<NewFile>(path);
  });
  std::exception_ptr failure;  // the others go on giving
  const auto attempt = [&](auto&& act) {
    try {
      if (file && !failure) act();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  const auto put = [&](const std::string& text) { attempt([&] { file->append(text); }); };
  put("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  for_each_piece_of_all(ranks, mine, put);
  put("\n]}\n");
  attempt([&] { file->keep(); });
  ranks.agreement().agree(Call::trace_write, "", [&] {
    if (failure) std::rethrow_exception(failure);
  });
}

}  // namespace gemini
