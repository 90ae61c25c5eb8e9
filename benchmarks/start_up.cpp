// From the start of a process to the end of its first step, without what MPI_Init takes; and the memory of a
// rank beyond MPI's own. Starts itself again and again, as a program of one rank without a launcher.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "context.hpp"
#include "process_memory.hpp"
#include "statistics.hpp"

namespace gemini_bench {
namespace {

// What one start tells.
struct Start {
  double to_main_s, init_s, first_step_s;
  double rss_bytes, pss_bytes, model_bytes;  // beyond what they were after MPI_Init; as the library counts
};

double now_s() {
  return Seconds(Clock::now().time_since_epoch()).count();  // the same clock in all processes
}

void train(gemini_context_t ctx, const Params& params) {
  check(gemini_commit(ctx));
  for (gemini_param_t param : params) {
    check(gemini_pre_op(ctx, &param, 1));
    check(gemini_post_op(ctx, &param, 1));
  }
  check(gemini_set_phase(ctx, GEMINI_BACKWARD));
  for (gemini_param_t param : params) {
    check(gemini_pre_op(ctx, &param, 1));
    gemini_grad(param);
    check(gemini_post_op(ctx, &param, 1));
  }
  check(gemini_step(ctx, nullptr));
}

// The process that is measured: 16 parameters of `elems` elements in all.
int child(int report, double started_s, int elems) {
  Start start{};
  const double main_s = now_s();
  start.to_main_s = main_s - started_s;
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  const double ready_s = now_s();
  start.init_s = ready_s - main_s;
  start.rss_bytes = -process_bytes("Rss:");
  start.pss_bytes = -process_bytes("Pss:");
  const double begin_s = now_s();
  {
    Context ctx(Settings{{"optimizer", "adamw"}});
    const Params params = ctx.add(16, elems / 16);
    train(ctx, params);
    start.first_step_s = now_s() - begin_s;
    start.rss_bytes += process_bytes("Rss:");
    start.pss_bytes += process_bytes("Pss:");
    std::int64_t device = 0, host = 0;
    check(gemini_stat(ctx, GEMINI_STAT_DEVICE_BYTES, &device));
    check(gemini_stat(ctx, GEMINI_STAT_HOST_BYTES, &host));
    start.model_bytes = static_cast<double>(device + host);
  }
  MPI_Finalize();
  return write(report, &start, sizeof start) == static_cast<ssize_t>(sizeof start) ? 0 : 3;
}

Start measure(const char* program, int elems) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(2);
  const std::string report = std::to_string(ends[1]), count = std::to_string(elems);
  const std::string started = std::to_string(now_s());
  const pid_t pid = fork();
  if (pid == 0) {
    execl(program, program, "--child", report.c_str(), started.c_str(), count.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  Start start{};
  const bool told = read(ends[0], &start, sizeof start) == static_cast<ssize_t>(sizeof start);
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (told && status == 0) return start;
  std::fprintf(stderr, "start_up: the started process failed\n");
  std::exit(2);
}

}  // namespace
}  // namespace gemini_bench

int main(int argc, char** argv) {
  using namespace gemini_bench;
  if (argc == 5 && std::string(argv[1]) == "--child")
    return child(std::atoi(argv[2]), std::atof(argv[3]), std::atoi(argv[4]));
  constexpr int kSmall = 16 * 1024, kMillion = 1 << 20;
  constexpr double kMiB = 1024 * 1024;
  Table table(true);
  std::vector<double> to_main, init, library, beyond;
  measure(argv[0], kSmall);
  for (int i = 0; i < kPairs; ++i) {
    const Start start = measure(argv[0], kSmall);
    to_main.push_back(1e3 * start.to_main_s);
    init.push_back(1e3 * start.init_s);
    library.push_back(1e3 * start.first_step_s);
    beyond.push_back(1e3 * (start.to_main_s + start.first_step_s));
  }
  table.row("MPI_Init", median(init), "ms");
  table.row("process start to main (loading)", median(to_main), "ms");
  table.row("gemini_create to the end of the first step", median(library), "ms");
  print_quartiles(table, "process start to the end of the first step, beyond MPI_Init", beyond, "ms");
  table.at_most(100, "process start to the end of the first step, beyond MPI_Init, median", median(beyond),
                "ms");

  std::vector<double> rss, pss, model;
  for (int i = 0; i < 5; ++i) {
    const Start start = measure(argv[0], kMillion);
    rss.push_back(start.rss_bytes / kMiB);
    pss.push_back(start.pss_bytes / kMiB);
    model.push_back(start.model_bytes / kMiB);
  }
  table.row("1048576 parameters: held by the library for the model", median(model), "MiB");
  table.row("1048576 parameters: Pss since MPI_Init", median(pss), "MiB");
  table.at_most(10, "1048576 parameters: RSS since MPI_Init, beyond the model", median(rss) - median(model),
                "MiB");
  return 0;
}
