#include "collectives/wire_format.hpp"

#include <cstring>

#include "kernels/float8.hpp"
#include "kernels/kernels.hpp"

namespace gemini {

static_assert(WireFormat::kBlock % kernels::kFloat8Block == 0);

WireFormat::WireFormat(DType values, std::string_view asked) : values_(values), wire_(values) {
  if (asked == "f8_e4m3") {
    kind_ = Kind::float8;
  } else if (asked != "same" && size_of(values) > 2) {
    kind_ = Kind::bits16;
    wire_ = asked == "bf16" ? DType::bf16 : DType::f16;
  }
}

std::int64_t WireFormat::bytes_for(std::int64_t elems) const {
  return kind_ == Kind::float8 ? kernels::encoded_bytes(elems) : elems * size_of(wire_);
}

MPI_Datatype WireFormat::type() const {
  return kind_ == Kind::float8 ? MPI_UINT8_T : mpi_type(wire_);
}

int WireFormat::count_for(std::int64_t elems) const {
  return static_cast<int>(kind_ == Kind::float8 ? bytes_for(elems) : elems);
}

void WireFormat::pack(const std::byte* values, std::int64_t elems, std::byte* wire) const {
  switch (kind_) {
    case Kind::same: std::memcpy(wire, values, static_cast<std::size_t>(bytes_for(elems))); break;
    case Kind::bits16: kernels::convert(values_, values, wire_, wire, elems); break;
    case Kind::float8: kernels::encode_float8(values_, values, elems, wire); break;
  }
}

void WireFormat::unpack(const std::byte* wire, std::int64_t elems, std::byte* values) const {
  switch (kind_) {
    case Kind::same: std::memcpy(values, wire, static_cast<std::size_t>(bytes_for(elems))); break;
    case Kind::bits16: kernels::convert(wire_, wire, values_, values, elems); break;
    case Kind::float8: kernels::decode_float8(wire, elems, values_, values); break;
  }
}

}  // namespace gemini
