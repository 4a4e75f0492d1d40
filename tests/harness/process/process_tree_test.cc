#include "harness/process/process_tree.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "harness/process/spawn.h"

namespace shakedown {
namespace {

const TreeProcess* Find(const ProcessTree& tree, pid_t pid) {
  const auto it = std::find_if(tree.processes.begin(), tree.processes.end(),
                               [&](const TreeProcess& p) { return p.identity.pid == pid; });
  return it == tree.processes.end() ? nullptr : &*it;
}

TEST(ProcessTree, HasChildrenAndGrandchildrenWithParentsFirst) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "sleep 1000 & echo $!; wait"};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.descriptors = {{ends[1], 1}};
  options.new_session = true;
  const Result<SpawnedProcess> child = Spawn(options);
  ASSERT_TRUE(child) << child.error().message;
  char line[32] = {};
  ASSERT_GT(::read(ends[0], line, sizeof line - 1), 0);
  const pid_t grandchild = std::atoi(line);

  const Result<ProcessTree> tree = ProcessesBelow(::getpid());
  ASSERT_TRUE(tree) << tree.error().message;
  const TreeProcess* first = Find(*tree, child->pid);
  const TreeProcess* second = Find(*tree, grandchild);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_LT(first, second);
  EXPECT_EQ(first->identity, child->identity);
  EXPECT_EQ(first->parent, ::getpid());
  EXPECT_EQ(first->session, child->pid);
  EXPECT_EQ(second->parent, child->pid);
  EXPECT_EQ(second->session, child->pid);
  EXPECT_EQ(Find(*tree, ::getpid()), nullptr) << "the root is not part of its tree";
  EXPECT_EQ(Find(*tree, ::getppid()), nullptr);
  EXPECT_EQ(CommandOf(child->pid), "/bin/sh -c sleep 1000 & echo $!; wait");

  const Result<UniqueFd> sleeper = OpenPidfd(second->identity);
  ASSERT_TRUE(sleeper);
  ASSERT_TRUE(SignalPidfd(sleeper->get(), SIGKILL));
  ASSERT_TRUE(Wait(child->pidfd.get()));
  EXPECT_EQ(CommandOf(child->pid), "");
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace shakedown
