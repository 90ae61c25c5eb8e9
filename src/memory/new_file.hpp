// A file that appears whole or not at all: written under another name, made durable, renamed. What is there
// and no plain file (a pipe, /dev/stdout) is written to as it is.
#pragma once

#include <string>
#include <string_view>

#include "memory/descriptor.hpp"

namespace gemini {

// Every failure is GEMINI_ERR_IO.
class NewFile {
 public:
  explicit NewFile(std::string path);
  // What was not kept is removed; an older file at the path stays.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void append(std::string_view text);
  void keep();

 private:
  [[noreturn]] void refuse(int error) const;

  std::string path_;
  bool in_place_;
  std::string name_;  // for the time being
  Descriptor file_;
  bool kept_ = false;
};

// GEMINI_ERR_NOT_FOUND if there is none, else GEMINI_ERR_IO.
std::string read_file(const std::string& path);

}  // namespace gemini
