#include "hone/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>

#include "hone/base/clock.h"
#include "hone/base/file.h"

extern char** environ;

namespace hone {
namespace {

constexpr double kPollSeconds =
    0.002;  // between looks at a child that has closed its output and still runs

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() { close_read(), close_write(); }
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0], write_end = ends[1];
    return true;
  }
  void close_read() {
    if (read_end >= 0) ::close(std::exchange(read_end, -1));
  }
  void close_write() {
    if (write_end >= 0) ::close(std::exchange(write_end, -1));
  }
};

// What posix_spawn is told; frees itself.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  int spawn(const std::vector<std::string>& argv, const std::string& directory,
            const std::array<int, 3>& files, pid_t& child) {
    if (!directory.empty()) posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str());
    for (int i = 0; i < 3; ++i)
      posix_spawn_file_actions_adddup2(&actions_, files[static_cast<size_t>(i)], i);
    sigset_t none;
    sigset_t defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGQUIT}) sigaddset(&defaults, signal);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::vector<char*> arguments;
    for (const std::string& argument : argv)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    return posix_spawnp(&child, arguments[0], &actions_, &attributes_, arguments.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Blocks SIGPIPE in this thread while we write to a child that may not read, and takes it back if
// one came.
class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_only_);
    sigaddset(&pipe_only_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only_, &before_);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;
  ~NoSigpipe() {
    const timespec now = {};
    while (!sigismember(&before_, SIGPIPE) && sigtimedwait(&pipe_only_, nullptr, &now) == SIGPIPE)
      continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_only_;
  sigset_t before_;
};

// Reads what is there; closes at the end of the stream.
void drain(Pipe& pipe, std::string& into) {
  char buffer[1 << 14];
  const ssize_t got = ::read(pipe.read_end, buffer, sizeof(buffer));
  if (got > 0) into.append(buffer, static_cast<size_t>(got));
  if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) pipe.close_read();
}

void feed(Pipe& pipe, std::string_view& input) {
  const ssize_t put = ::write(pipe.write_end, input.data(), input.size());
  if (put > 0) input.remove_prefix(static_cast<size_t>(put));
  const bool refused = put < 0 && errno != EINTR && errno != EAGAIN;
  if (refused || input.empty()) pipe.close_write();
}

// Moves bytes until both outputs are closed; false when the deadline comes first.
bool talk(Pipe& in, Pipe& out, Pipe& err, std::string_view input, double deadline,
          SubprocessResult& result) {
  const NoSigpipe guard;
  if (input.empty()) in.close_write();
  while (out.read_end >= 0 || err.read_end >= 0) {
    const double left = deadline - real_clock().now_seconds();
    if (left <= 0) return false;
    // poll ignores negative descriptors, which is what a closed end is.
    pollfd waiting[3] = {
        {out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}, {in.write_end, POLLOUT, 0}};
    if (::poll(waiting, 3, static_cast<int>(std::min(std::ceil(left * 1e3), 1e6))) < 0) continue;
    if (waiting[0].revents != 0) drain(out, result.out);
    if (waiting[1].revents != 0) drain(err, result.err);
    if (waiting[2].revents != 0) feed(in, input);
  }
  return true;
}

bool wait_until(pid_t child, double deadline, int& state) {
  for (;;) {
    const pid_t ended = ::waitpid(child, &state, WNOHANG);
    if (ended == child) return true;
    const double left = deadline - real_clock().now_seconds();
    if (left <= 0) return false;
    real_clock().sleep(std::min(left, kPollSeconds));
  }
}

}  // namespace

Result<SubprocessResult> run_subprocess(const std::vector<std::string>& argv,
                                        const SubprocessOptions& options) {
  HONE_ASSERT(!argv.empty(), "a program has a name");
  const double deadline = real_clock().now_seconds() + options.timeout_seconds;
  Pipe in;
  Pipe out;
  Pipe err;
  if (!in.open() || !out.open() || !err.open() || ::fcntl(in.write_end, F_SETFL, O_NONBLOCK) != 0) {
    return error(Code::kIo, "cannot make a pipe for '{}': {}", argv[0], errno_text(errno));
  }
  pid_t child = -1;
  if (const int problem = SpawnPlan().spawn(argv, options.directory,
                                            {in.read_end, out.write_end, err.write_end}, child);
      problem != 0) {
    return error(problem == ENOENT ? Code::kNotFound : Code::kIo, "cannot run '{}': {}", argv[0],
                 errno_text(problem));
  }
  in.close_read(), out.close_write(), err.close_write();

  SubprocessResult result;
  int state = 0;
  if (!talk(in, out, err, options.input, deadline, result) || !wait_until(child, deadline, state)) {
    ::kill(-child, SIGKILL);
    while (::waitpid(child, &state, 0) < 0 && errno == EINTR) continue;
    return error(Code::kTimeout, "'{}' did not end within {} s", argv[0], options.timeout_seconds);
  }
  if (WIFSIGNALED(state)) result.signal = WTERMSIG(state);
  if (WIFEXITED(state)) result.exit_code = WEXITSTATUS(state);
  return result;
}

std::string describe_end(const SubprocessResult& result) {
  if (result.signal == 0) return fmt::format("exit code {}", result.exit_code);
  const char* text = sigdescr_np(result.signal);
  std::string name = text != nullptr ? text : "unknown";
  name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
  return fmt::format("signal {} ({})", result.signal, name);
}

}  // namespace hone
