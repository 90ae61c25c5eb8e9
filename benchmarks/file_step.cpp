// An optimizer step whose gradient sums and moments lie in files, over the slower of what it cannot do
// without: the disk's time for these bytes, and the same step in memory.
#include <cstdlib>
#include <string>

#include "chunks/shard_windows.hpp"
#include "context.hpp"
#include "disk_stream.hpp"
#include "statistics.hpp"

namespace gemini_bench {
namespace {

constexpr int kLayers = 16;
constexpr std::int64_t kElems = std::int64_t{2} << 20;  // of a layer, which is a chunk
constexpr double kMost = 1.15;
constexpr std::int64_t kStagingBytes = std::int64_t{8} << 20;  // the most that is used, a 16th of host_memory

// Bytes that one window moves of one array.
std::int64_t piece_bytes() {
  const std::int64_t elems = gemini::Staging::kMinElems;
  return kStagingBytes / gemini::Staging::bytes_for(elems) * elems * 4;
}

class Model {
 public:
  explicit Model(Settings settings)
      : ctx_(with_common(std::move(settings))), params_(ctx_.add(kLayers, kElems)) {
    check(gemini_commit(ctx_));
  }

  // Seconds of gemini_step alone; all gradients are reduced before.
  double step() {
    operate(GEMINI_FORWARD);
    operate(GEMINI_BACKWARD);
    for (std::int64_t works = 1; works > 0;) {
      check(gemini_progress(ctx_));
      check(gemini_stat(ctx_, GEMINI_STAT_IN_FLIGHT, &works));
    }
    const DiskBytes before = disk_bytes();
    const Clock::time_point start = Clock::now();
    check(gemini_step(ctx_, nullptr));
    const double time_s = Seconds(Clock::now() - start).count();
    const DiskBytes after = disk_bytes();
    moved_ = {after.read - before.read, after.written - before.written};
    return time_s;
  }
  // By the last step.
  [[nodiscard]] DiskBytes moved() const { return moved_; }
  [[nodiscard]] double file_bytes() const {
    std::int64_t bytes = 0;
    check(gemini_stat(ctx_, GEMINI_STAT_FILE_BYTES, &bytes));
    return static_cast<double>(bytes);
  }

 private:
  static Settings with_common(Settings settings) {
    settings.emplace_back("optimizer", "adamw");
    settings.emplace_back("max_grad_norm", "1");
    settings.emplace_back("chunk_elems", std::to_string(kElems));
    return settings;
  }
  void operate(gemini_phase_t phase) {
    check(gemini_set_phase(ctx_, phase));
    for (gemini_param_t& param : params_) {
      check(gemini_pre_op(ctx_, &param, 1));
      if (phase == GEMINI_BACKWARD) {
        auto* gradient = static_cast<float*>(gemini_grad(param));
        std::fill_n(gradient, kElems, 1e-3F);
      }
      check(gemini_post_op(ctx_, &param, 1));
    }
  }

  Context ctx_;
  Params params_;
  DiskBytes moved_;
};

int run(const std::string& directory, int rounds) {
  Table table(true);
  Model in_memory({});
  Model in_files({{"placement", "static"},
                  {"offload_optim_frac", "1"},
                  {"device_memory", "4GiB"},
                  {"host_memory", std::to_string(16 * kStagingBytes)},
                  {"spill_dir", directory}});
  for (int i = 0; i < 3; ++i) in_memory.step(), in_files.step();
  const DiskBytes bytes = in_files.moved();
  DiskStream stream(directory, bytes, piece_bytes());
  const auto disk = [&] {
    const Clock::time_point start = Clock::now();
    stream.run();
    return Seconds(Clock::now() - start).count();
  };
  disk();
  std::vector<double> files_ms, disk_ms, memory_ms, ratios;
  for (int round = 0; round < rounds; ++round) {
    double t[3] = {0, 0, 0};
    for (int i = 0; i < 3; ++i) {  // each is first, second and third in turn
      const int which = (round + i) % 3;
      t[which] = which == 0 ? in_files.step() : which == 1 ? disk() : in_memory.step();
    }
    files_ms.push_back(1e3 * t[0]);
    disk_ms.push_back(1e3 * t[1]);
    memory_ms.push_back(1e3 * t[2]);
    ratios.push_back(t[0] / std::max(t[1], t[2]));
  }
  constexpr double kMiB = 1024 * 1024;
  table.row("in files", in_files.file_bytes() / kMiB, "MiB");
  table.row("read by a step", static_cast<double>(bytes.read) / kMiB, "MiB");
  table.row("written by a step", static_cast<double>(bytes.written) / kMiB, "MiB");
  table.row(
      std::string("the disk alone, ") + stream.engine() + (stream.direct() ? ", O_DIRECT" : ", page cache"),
      median(disk_ms), "ms");
  table.row("the step in memory", median(memory_ms), "ms");
  table.row("the step in files", median(files_ms), "ms");
  const std::string what = "the step in files over the slower of disk and memory";
  print_quartiles(table, what, ratios, "times");
  table.at_most(kMost, what + ", median", median(ratios), "times");
  return 0;
}

}  // namespace
}  // namespace gemini_bench

int main(int argc, char** argv) {
  gemini_bench::init_mpi(argc, argv);
  int status = 2;
  if (argc == 2)
    status = gemini_bench::run(argv[1], gemini_bench::kPairs);
  else
    std::fprintf(stderr, "usage: file_step DIRECTORY\n");
  MPI_Finalize();
  return status;
}
