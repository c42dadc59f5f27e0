// base/subprocess.h - runs a program without a shell and collects what it writes. The child and all
// that it starts form one process group, which is killed when the time is over; a Ctrl-C meant for
// us does not reach it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"

namespace hone {

struct SubprocessOptions {
  double timeout_seconds = 60;
  std::string input;      // written to its standard input, which is then closed
  std::string directory;  // to run in; empty: ours
};

struct SubprocessResult {
  int exit_code = 0;  // of a normal end
  int signal = 0;     // what killed it, or 0
  std::string out;
  std::string err;
  [[nodiscard]] bool ok() const { return exit_code == 0 && signal == 0; }
};

// argv[0] is looked up in PATH. A program that runs and fails is a result; an error is: kNotFound
// (no such program), kTimeout, kIo.
[[nodiscard]] Result<SubprocessResult> run_subprocess(const std::vector<std::string>& argv,
                                                      const SubprocessOptions& options = {});

// "exit code 2" or "signal 11 (segmentation fault)".
[[nodiscard]] std::string describe_end(const SubprocessResult& result);

}  // namespace hone
