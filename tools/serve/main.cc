// hone-serve: measures on this machine for tuners elsewhere (`hone serve` starts it). It has no
// compiler and needs no other file, so a board has this program alone: with --worker, it is the
// process that runs candidates, and with --model the one that runs a model. With --connect it is
// the other end: the process that has a tuner's connection (remote/link.h), started by the tuner.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "hone/base/file.h"
#include "hone/base/installation.h"
#include "hone/base/memory_bound.h"
#include "hone/base/options.h"
#include "hone/measure/local_runner.h"
#include "hone/measure/worker.h"
#include "hone/remote/grpc/relay.h"
#include "hone/remote/grpc/server.h"
#include "hone/remote/machine_file.h"
#include "hone/remote/model_process.h"

#include "../hone/serve_options.h"

namespace hone::tool {
namespace {

constexpr int kInternal = 1, kBadInput = 2;  // exit codes, as those of hone
constexpr double kStartSeconds = 10;         // until the process of a model says hello

int fail(const Status& status) {
  fmt::print(stderr, "hone-serve: {}\n", status.message());
  return status.code() == Code::kInternal ? kInternal : kBadInput;
}

Result<remote::ListenOptions> read_files(const ServeOptions& options, std::string& token_file) {
  remote::ListenOptions listen{.address = options.listen, .port = options.port};
  token_file = options.token_file;
  if (token_file.empty()) {
    HONE_ASSIGN_OR_RETURN(token_file, remote::default_token_file());
  }
  HONE_ASSIGN_OR_RETURN(listen.token, remote::read_or_make_token(token_file));
  if (options.tls_certificate.empty()) return listen;
  HONE_ASSIGN_OR_RETURN(listen.certificate, read_file(options.tls_certificate));
  HONE_ASSIGN_OR_RETURN(listen.key, read_file(options.tls_key));
  return listen;
}

// A model that asks for more memory gets an error, and the system need not end processes.
Result<std::unique_ptr<WorkerChild>> start_model(const std::string& program) {
  const std::string role = "--model";
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<WorkerChild> child,
                        WorkerChild::start(program, {&role, 1}, kStartSeconds));
  if (const int64_t all = memory_here().main; all > 0) child->limit_memory(all / 4 * 3);
  return child;
}

// Data that tuners have sent takes `cache` bytes at most. Half is for the data, and half for the
// copies of the process that measures: it has one of the operands of the last job, which may be all
// of the data, or some of a quarter of that.
remote::ServiceOptions service_options(int64_t cache, const std::string& program) {
  remote::ServiceOptions options{
      .operand_bytes = cache / 2, .target = target::host(), .hone = HONE_VERSION};
  options.make_runner = [=] {
    return measure::make_local_runner(
        {.executable = program, .arguments = {"--worker"}, .held_bytes = cache / 8});
  };
  options.start_model = [=] { return start_model(program); };
  return options;
}

// Listens until it is told to end.
Status serve(const ServeOptions& options) {
  std::string token_file;
  HONE_ASSIGN_OR_RETURN(const remote::ListenOptions listen, read_files(options, token_file));
  int64_t cache = memory_here().main / 4;
  if (!options.cache.empty()) {
    HONE_ASSIGN_OR_RETURN(cache, of_option("--cache", parse_bytes(options.cache)));
  }
  // Signals are for this thread, which waits for them.
  sigset_t ends;
  sigemptyset(&ends);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, number);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<remote::Service> service,
                        remote::Service::create(service_options(cache, own_file())));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<remote::GrpcServer> server,
                        remote::GrpcServer::start(*service, listen));
  fmt::print("measures for tuners at grpc://{}:{}{}; their token is in {}\n", options.listen,
             server->port(), listen.certificate.empty() ? "" : " by TLS", token_file);
  std::fflush(stdout);
  int number = 0;
  sigwait(&ends, &number);
  // What is being measured is of no use any more: its process ends with this one.
  std::fflush(nullptr);
  ::_exit(0);
}

int run(int argc, char** argv) {
  CLI::App app("Measures for tuners elsewhere (docs/user/remote.md).", "hone-serve");
  ServeOptions options;
  add_serve_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return fail(Status(Code::kInvalid, e.what()));
  }
  return fail(serve(options));
}

}  // namespace
}  // namespace hone::tool

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
  ::setenv("GRPC_VERBOSITY", "NONE", 0);  // what goes wrong is said once, by Hone
  const std::string_view role = argc == 4 && std::string_view(argv[2]) == "--fd" ? argv[1] : "";
  if (role == "--connect" || role == "--worker" || role == "--model") {
    const hone::Result<int64_t> parsed = hone::parse_int(argv[3], 0, 1 << 20);
    const int fd = parsed.ok() ? static_cast<int>(*parsed) : -1;
    if (fd >= 0 && role == "--connect") return hone::remote::relay_main(fd);
    if (fd >= 0 && role == "--model") return hone::remote::model_main(fd);
    if (fd >= 0) return hone::measure::worker_main(fd);
  }
  return hone::tool::run(argc, argv);
}
