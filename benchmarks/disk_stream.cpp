#include "disk_stream.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "memory/async_io.hpp"
#include "memory/own_file.hpp"
#include "memory/page.hpp"

namespace gemini_bench {
namespace {

constexpr int kSets = 3, kReads = 3, kWrites = 2;

}  // namespace

DiskBytes disk_bytes() {
  std::ifstream file("/proc/self/io");
  DiskBytes bytes;
  std::string word;
  while (file >> word) {
    if (word == "read_bytes:") file >> bytes.read;
    if (word == "write_bytes:") file >> bytes.written;
  }
  return bytes;
}

struct DiskStream::Parts {
  Parts(const std::string& directory, std::int64_t piece)
      : piece_bytes(piece), file(directory), io(gemini::AsyncIo::Engine::best) {}

  struct Set {
    std::byte* buffer = nullptr;
    std::vector<gemini::Transfer> under_way;
  };

  void wait_for(Set& set) {
    for (const gemini::Transfer transfer : set.under_way)
      if (io.wait(transfer) != 0) {
        std::fprintf(stderr, "reading or writing %s failed\n", file.path().c_str());
        std::exit(2);
      }
    set.under_way.clear();
  }
  [[nodiscard]] std::int64_t at(std::int64_t piece) const { return piece % pieces * piece_bytes; }
  void read(Set& set, std::int64_t first, int count) {
    wait_for(set);
    for (int i = 0; i < count; ++i)
      set.under_way.push_back(
          io.read(file.direct_fd(), at(first + i), set.buffer + i * piece_bytes, piece_bytes));
  }
  void write(Set& set, std::int64_t first, int count) {
    for (int i = 0; i < count; ++i)
      set.under_way.push_back(
          io.write(file.direct_fd(), at(first + i), set.buffer + i * piece_bytes, piece_bytes));
  }
  // Windows of so many reads and writes.
  void pass(std::int64_t windows, int reads, int writes) {
    if (windows == 0) return;
    read(sets[0], 0, reads);
    for (std::int64_t w = 0; w < windows; ++w) {
      Set& set = sets[static_cast<std::size_t>(w % kSets)];
      wait_for(set);
      if (w + 1 < windows) read(sets[static_cast<std::size_t>((w + 1) % kSets)], (w + 1) * reads, reads);
      write(set, w * reads, writes);
    }
    for (Set& set : sets) wait_for(set);
  }

  std::int64_t piece_bytes;
  std::int64_t pieces = 0, read_windows = 0, update_windows = 0;
  gemini::OwnFile file;
  std::array<Set, kSets> sets;
  gemini::AsyncIo io;  // last: its transfers end before the file
};

DiskStream::DiskStream(const std::string& directory, const DiskBytes& bytes, std::int64_t piece_bytes)
    : parts_(std::make_unique<Parts>(directory, piece_bytes)) {
  Parts& p = *parts_;
  p.update_windows = std::max<std::int64_t>(1, bytes.written / (kWrites * piece_bytes));
  p.read_windows = std::max<std::int64_t>(0, bytes.read / piece_bytes - kReads * p.update_windows);
  p.pieces = kReads * p.update_windows;
  p.file.grow(p.pieces * piece_bytes);
  for (Parts::Set& set : p.sets) {
    const auto size = static_cast<std::size_t>(kReads * piece_bytes);
    set.buffer = static_cast<std::byte*>(std::aligned_alloc(gemini::kPage, size));
    std::fill_n(set.buffer, size, std::byte{1});
  }
  for (std::int64_t piece = 0; piece < p.pieces; ++piece) {  // so that all of it is on the disk
    p.write(p.sets[0], piece, 1);
    p.wait_for(p.sets[0]);
  }
}

DiskStream::~DiskStream() {
  for (Parts::Set& set : parts_->sets) std::free(set.buffer);
}

void DiskStream::run() {
  parts_->pass(parts_->read_windows, 1, 0);
  parts_->pass(parts_->update_windows, kReads, kWrites);
}

const char* DiskStream::engine() const {
  return parts_->io.engine();
}

bool DiskStream::direct() const {
  return parts_->file.direct_fd() != parts_->file.fd();
}

}  // namespace gemini_bench
