// How the values of a chunk travel: as they are, rounded to 16 bits, or in 8 bits with a scale per block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/dtype.hpp"
#include "collectives/mpi.hpp"

namespace gemini {

class WireFormat {
 public:
  // Pieces of a multiple of this many elements pack to as many bytes as the whole.
  static constexpr std::int64_t kBlock = 128;

  // asked: same, bf16, f16 or f8_e4m3. What is not narrower than `values` changes nothing.
  WireFormat(DType values, std::string_view asked);

  [[nodiscard]] bool converts() const { return kind_ != Kind::same; }
  [[nodiscard]] std::int64_t bytes_for(std::int64_t elems) const;
  // What MPI is told: count_for(elems) of type().
  [[nodiscard]] MPI_Datatype type() const;
  [[nodiscard]] int count_for(std::int64_t elems) const;

  // wire: bytes_for(elems), aligned to 4.
  void pack(const std::byte* values, std::int64_t elems, std::byte* wire) const;
  void unpack(const std::byte* wire, std::int64_t elems, std::byte* values) const;

 private:
  enum class Kind { same, bits16, float8 };
  DType values_;
  Kind kind_ = Kind::same;
  DType wire_;  // of same and bits16
};

}  // namespace gemini
