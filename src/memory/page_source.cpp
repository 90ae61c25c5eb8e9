#include "memory/page_source.hpp"

#include <sys/mman.h>

namespace gemini {
namespace {

class PrivatePages final : public PageSource {
 public:
  std::byte* take(std::int64_t bytes) override {
    void* data = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
  }
  void give(std::byte* data, std::int64_t bytes) noexcept override {
    munmap(data, static_cast<std::size_t>(bytes));
  }
  [[nodiscard]] const char* name() const noexcept override { return "its memory"; }
};

}  // namespace

PageSource& private_pages() noexcept {
  static auto& pages = *new PrivatePages;  // contexts may end after all static objects
  return pages;
}

}  // namespace gemini
