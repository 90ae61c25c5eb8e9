// A slow link: when its operations end, who drives them, and what waiting for them costs.
#include "collectives/delayed_transport.hpp"

#include <ctime>
#include <thread>
#include <vector>

#include "collectives/mpi_transport.hpp"
#include "kernels/runtime.hpp"
#include "support/rank_assert.hpp"
#include "world.hpp"

namespace gemini {
namespace {

using std::chrono::milliseconds;
using test::world_rank;
using test::world_size;

constexpr std::int64_t kElems = 1000;

// A transport of this program's ranks behind a link.
class Link {
 public:
  explicit Link(LinkDelay delay) {
    std::unique_ptr<Transport> real;
    if (world_size() == 1) {
      real = make_self_transport();
    } else {
      auto mpi = std::make_unique<MpiTransport>(
          Communicator(MPI_COMM_WORLD),
          make_topology(world_rank(), std::vector<int>(static_cast<std::size_t>(world_size()))));
      free_ = [raw = mpi.get()] { raw->free_communicators(); };
      real = std::move(mpi);
    }
    transport_ = make_delayed_transport(std::move(real), delay);
  }
  ~Link() {
    if (free_) free_();
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  Transport* operator->() { return transport_.get(); }
  std::unique_ptr<Operation> gather() { return transport_->acquire(chunk(), slot_.data()); }
  [[nodiscard]] bool gathered() {
    const auto* values = reinterpret_cast<const double*>(transport_->view(chunk(), slot_.data()));
    for (std::int64_t i = 0; world_size() > 1 && i < kElems * world_size(); ++i)
      if (values[i] != static_cast<double>(i / kElems + 1)) return false;
    return true;
  }

 private:
  ShardedChunk chunk() { return {kElems, DType::f64, reinterpret_cast<std::byte*>(shard_.data())}; }

  std::vector<double> shard_ = std::vector<double>(kElems, world_rank() + 1);
  std::vector<std::byte> slot_ = std::vector<std::byte>(static_cast<std::size_t>(8 * kElems * world_size()));
  std::unique_ptr<Transport> transport_;
  std::function<void()> free_;
};

Clock::duration time_of(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return Clock::now() - start;
}

double thread_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST(DelayedTransport, IsWhatItCoversButLater) {
  test::Queue queue;
  Link link({20000, 1000});
  EXPECT_EQ(link->ranks(), world_size());
  EXPECT_EQ(link->needs_slot(), world_size() > 1);
  EXPECT_GE(time_of([&] { queue.run(link.gather(), "a test"); }),
            world_size() > 1 ? milliseconds(20) : Clock::duration{});
  EXPECT_TRUE(link.gathered());
  EXPECT_EQ(link->wire().gather_bytes, 8 * kElems * (world_size() - 1));
  link->reset_wire();
  EXPECT_EQ(link->wire().gather_bytes, 0);
}

TEST(DelayedTransport, TakesTheTimeOfTheBytesThatThisRankSends) {
  test::Queue queue;
  kernels::start();
  const double gbit_per_s = 8 * 8.0 * kElems / 30e6;  // a shard takes 30 ms
  Link link({0, gbit_per_s});
  EXPECT_GE(time_of([&] { queue.run(link.gather(), "a test"); }), milliseconds(30) * (world_size() - 1));
  const std::vector<double> gradient(static_cast<std::size_t>(kElems * world_size()), 1.0);
  std::vector<double> sum(kElems);
  const auto reduce = [&] {
    queue.run(link->reduce({kElems, DType::f64, reinterpret_cast<const std::byte*>(gradient.data()),
                            reinterpret_cast<std::byte*>(sum.data()), true, 1.0}),
              "a test");
  };
  EXPECT_GE(time_of(reduce), milliseconds(30) * (world_size() - 1));
  EXPECT_EQ(sum, std::vector<double>(kElems, world_size()));
  EXPECT_EQ(link->wire().reduce_bytes, 8 * kElems * (world_size() - 1));
}

TEST(DelayedTransport, IsOneLink) {
  if (world_size() == 1) GTEST_SKIP() << "alone a rank gathers nothing";
  test::Queue queue;
  Link link({20000, 1000});
  const auto three = [&] {
    queue.submit(link.gather());
    queue.submit(link.gather());
    queue.wait(queue.submit(link.gather()), "a test");
  };
  EXPECT_GE(time_of(three), milliseconds(60));
}

TEST(DelayedTransport, WorksWhileTheCallerDoes) {
  if (!mpi_allows_any_thread()) GTEST_SKIP() << "takes MPI_THREAD_MULTIPLE";
  test::Queue queue;
  Link link({20000, 1000});
  queue.submit_background(link.gather());
  const Ticket last = queue.submit_background(link.gather());
  for (int i = 0; i < 60000 && !queue.done(last); ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(queue.done(last)) << "without a call of the library";
  EXPECT_TRUE(link.gathered());
}

TEST(DelayedTransport, CostsNoProcessorWhileItWaits) {
  test::Queue queue;
  Link link({400000, 1000});
  queue.run(link.gather(), "a test");  // peers are here
  const double before = thread_cpu_seconds();
  queue.run(link.gather(), "a test");
  EXPECT_LT(thread_cpu_seconds() - before, 0.05);
}

}  // namespace
}  // namespace gemini
