// SIGTERM: seen by the training loop, or the end of a rank that is stuck. The process that gets the
// signal is a child of the test.
#include "trainer/termination.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "harness/base/unique_fd.h"

namespace shakedown {
namespace {

// Runs `body` in a child and returns its wait status; what it writes to `fd` comes back in `said`.
int InChild(const std::function<void(int fd)>& body, std::string* said) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    body(ends[1]);
    ::_exit(99);
  }
  ::close(ends[1]);
  const UniqueFd read_end(ends[0]);
  char buffer[64];
  for (ssize_t n; (n = ::read(read_end.get(), buffer, sizeof buffer)) > 0;) {
    said->append(buffer, static_cast<size_t>(n));
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(Termination, ARankThatActsInTimeEndsAsItLikes) {
  std::string said;
  const int status = InChild(
      [](int fd) {
        const auto watch = Termination::Watch(std::chrono::seconds(20),
                                              [fd] { (void)!::write(fd, "overdue", 7); });
        if (!watch || (*watch)->requested()) ::_exit(98);
        ::kill(::getpid(), SIGTERM);
        while (!(*watch)->requested()) ::usleep(100);
        (*watch)->Acting();
        ::_exit(71);
      },
      &said);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 71);
  EXPECT_EQ(said, "");
}

TEST(Termination, ARankThatIsStuckSaysSoAndDiesOfTheSignal) {
  std::string said;
  const int status = InChild(
      [](int fd) {
        const auto watch =
            Termination::Watch(Milliseconds(20), [fd] { (void)!::write(fd, "overdue", 7); });
        if (!watch) ::_exit(98);
        ::kill(::getpid(), SIGTERM);
        while (true) ::pause();
      },
      &said);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  EXPECT_EQ(said, "overdue");
}

TEST(Termination, WithoutASignalItGoesAway) {
  std::string said;
  const int status = InChild(
      [](int) {
        {
          const auto watch = Termination::Watch(Milliseconds(1), [] { ::_exit(97); });
        }
        ::_exit(0);
      },
      &said);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace shakedown
