// A set of options: setting, files, the environment, and the text that ranks compare.
#include "base/options.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>  // setenv

#include <cstdio>
#include <fstream>

#include "base/error.hpp"

namespace gemini {
namespace {

class File {
 public:
  explicit File(const std::string& content) { std::ofstream(path()) << content; }
  ~File() { std::remove(path()); }
  static const char* path() { return "options_test.conf"; }
};

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

template <class Call>
std::string refusal(gemini_status_t expected, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), expected) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST(Options, DefaultsThenTheLastSetWins) {
  Options options;
  EXPECT_EQ(options.real("lr"), 1e-3);
  EXPECT_FALSE(options.is_set("lr"));
  options.set("lr", "0.5");
  options.set("lr", "0.25");
  EXPECT_EQ(options.real("lr"), 0.25);
  EXPECT_TRUE(options.is_set("lr"));
}

TEST(Options, ReadsEachKind) {
  Options options;
  options.set("accumulate", "1e2");
  options.set("nesterov", "on");
  options.set("device_memory", "1.5KiB");
  EXPECT_EQ(options.integer("accumulate"), 100);
  EXPECT_TRUE(options.flag("nesterov"));
  EXPECT_EQ(options.bytes("device_memory"), 1536);
  EXPECT_EQ(options.bytes("host_memory"), -1);
}

TEST(Options, AnUnknownKeyGetsTheNearestNames) {
  Options options;
  const auto words = refusal(GEMINI_ERR_ARGUMENT, [&] { options.set("weight_decey", "0"); });
  EXPECT_NE(words.find("\"weight_decey\""), std::string::npos) << words;
  EXPECT_NE(words.find("weight_decay"), std::string::npos) << words;
  EXPECT_NE(refusal(GEMINI_ERR_ARGUMENT, [&] { (void)options.text("learning_rate_of_x"); }), "");
}

TEST(Options, AWrongValueChangesNothing) {
  Options options;
  options.set("lr", "0.5");
  refusal(GEMINI_ERR_ARGUMENT, [&] { options.set("lr", "fast"); });
  EXPECT_EQ(options.text("lr"), "0.5");
}

TEST(Options, UserKeysAreStoredUnchecked) {
  Options options;
  options.set("user.anything at all", "x = y");
  EXPECT_EQ(options.text("user.anything at all"), "x = y");
  refusal(GEMINI_ERR_NOT_FOUND, [&] { (void)options.text("user.other"); });
  refusal(GEMINI_ERR_ARGUMENT, [&] { options.set("user.", "x"); });
}

TEST(OptionsFile, LinesCommentsAndBlanks) {
  const File file("# a run\n\n  lr=0.5 # fast\n optimizer = sgd\r\nuser.data = /a b\nlog = off");
  Options options;
  options.load(File::path());
  EXPECT_EQ(options.real("lr"), 0.5);
  EXPECT_EQ(options.text("optimizer"), "sgd");
  EXPECT_EQ(options.text("user.data"), "/a b");
}

TEST(OptionsFile, AnErrorChangesNothingAndNamesTheLine) {
  Options options;
  options.set("lr", "0.125");
  for (const char* third : {"momentun = 0.9", "momentum = much", "momentum"}) {
    const File file(std::string("lr = 0.5\noptimizer = sgd\n") + third + "\nbeta1 = 0.5\n");
    const auto words = refusal(GEMINI_ERR_ARGUMENT, [&] { options.load(File::path()); });
    EXPECT_NE(words.find(std::string(File::path()) + ":3:"), std::string::npos) << words;
    EXPECT_NE(words.find("momentu"), std::string::npos) << words;
    EXPECT_EQ(options.text("lr"), "0.125");
    EXPECT_EQ(options.text("optimizer"), "adamw");
  }
}

TEST(OptionsFile, NothingThereIsNotFoundAndAFolderCannotBeRead) {
  Options options;
  refusal(GEMINI_ERR_NOT_FOUND, [&] { options.load("no/such/file"); });
  refusal(GEMINI_ERR_IO, [&] { options.load("."); });
  refusal(GEMINI_ERR_IO, [&] { options.load(std::string(300, 'x')); });
}

TEST(OptionsEnvironment, WinsOverWhatWasSet) {
  const Environment lr("GEMINI_LR", "0.75");
  const Environment chunk("GEMINI_CHUNK_ELEMS", "128");
  Options options;
  options.set("lr", "0.5");
  options.apply_environment();
  EXPECT_EQ(options.real("lr"), 0.75);
  EXPECT_EQ(options.integer("chunk_elems"), 128);
}

TEST(OptionsEnvironment, DoesNotReplaceABackendTheProgramChose) {
  const Environment backend("GEMINI_BACKEND", "cuda");
  Options chosen;
  chosen.set("backend", "host");
  chosen.apply_environment();
  EXPECT_EQ(chosen.text("backend"), "host");
  Options open;
  open.apply_environment();
  EXPECT_EQ(open.text("backend"), "cuda");
}

TEST(OptionsEnvironment, AWrongValueNamesTheVariable) {
  const Environment lr("GEMINI_LR", "fast");
  Options options;
  const auto words = refusal(GEMINI_ERR_ARGUMENT, [&] { options.apply_environment(); });
  EXPECT_NE(words.find("GEMINI_LR"), std::string::npos) << words;
}

TEST(AgreedText, IsEqualForEqualNumbers) {
  Options a;
  Options b;
  a.set("lr", "1e-3");
  b.set("lr", "0.0010");
  a.set("chunk_elems", "1e3");
  b.set("chunk_elems", " 1000 ");
  EXPECT_EQ(a.agreed_text(), b.agreed_text());
  EXPECT_EQ(Options().agreed_text(),
            b.agreed_text().replace(b.agreed_text().find("chunk_elems = 1000"), 18, "chunk_elems = 0"));
}

TEST(AgreedText, DiffersWhereAnAgreedOptionDiffers) {
  for (const OptionSpec& spec : option_table()) {
    Options changed;
    std::string other = "other";
    if (spec.kind == OptionKind::choice)
      other = spec.keywords[spec.keywords[0] == spec.initial ? 1 : 0];
    else if (spec.kind == OptionKind::bytes)
      other = "12345";
    else if (spec.kind == OptionKind::collectives)
      other = "mpi";
    else if (spec.kind != OptionKind::text)
      other = spec.initial == "1" ? (spec.maximum > 1 ? "2" : "0.5") : (spec.maximum >= 1 ? "1" : "0.5");
    changed.set(spec.key, other);
    EXPECT_EQ(changed.agreed_text() == Options().agreed_text(), spec.scope == OptionScope::rank) << spec.key;
  }
}

TEST(AgreedText, TellsNumbersApartInTheLastBit) {
  Options a;
  Options b;
  a.set("lr", "0.1");
  b.set("lr", "0.10000000000000002");
  EXPECT_NE(a.agreed_text(), b.agreed_text());
}

}  // namespace
}  // namespace gemini
