// Limits of control groups, as both versions write them.
#include "memory/machine_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "file_test_support.hpp"

namespace gemini {
namespace {

void write_file(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(MachineMemory, IsTheLeastOfAllGroupsAboveInVersion2) {
  const test::Directory root;
  const std::int64_t machine = machine_memory(root.path());  // no groups at all
  EXPECT_GT(machine, 0);
  const std::string groups = root.path() + "/sys/fs/cgroup";
  write_file(root.path() + "/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  write_file(groups + "/slurm/job_7/step_0/memory.max", "max\n");
  EXPECT_EQ(machine_memory(root.path()), machine);
  write_file(groups + "/slurm/job_7/memory.max", "1048576\n");
  EXPECT_EQ(machine_memory(root.path()), 1048576);
  write_file(groups + "/slurm/job_7/step_0/memory.max", "2097152\n");
  EXPECT_EQ(machine_memory(root.path()), 1048576);
}

TEST(MachineMemory, OfAContainerIsItsMountsOwnLimitInVersion1) {
  const test::Directory root;
  const std::int64_t machine = machine_memory(root.path());
  write_file(root.path() + "/proc/self/cgroup", "5:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n0::/\n");
  const std::string limit = root.path() + "/sys/fs/cgroup/memory/memory.limit_in_bytes";
  write_file(limit, "9223372036854771712\n");
  EXPECT_EQ(machine_memory(root.path()), machine);
  write_file(limit, "3145728\n");
  EXPECT_EQ(machine_memory(root.path()), 3145728);
}

}  // namespace
}  // namespace gemini
