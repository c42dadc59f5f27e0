#include <unistd.h>

#include <cerrno>

#include "hone/base/file.h"
#include "hone/base/installation.h"

#include "command.h"
#include "serve_options.h"

namespace hone::tool {
namespace {

// Becomes the program that serves, which has gRPC.
Status serve(const ServeOptions& options) {
  const std::vector<std::string> places = installed_places("libexec/hone/hone-serve");
  std::vector<std::string> words = to_words(options);
  words.insert(words.begin(), "hone-serve");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(stdout);
  for (const std::string& place : places) {
    ::execv(place.c_str(), argv.data());
    if (errno != ENOENT) return error(Code::kIo, "cannot start {}: {}", place, errno_text(errno));
  }
  return error(Code::kUnsupported,
               "this needs the program hone-serve, which is built where gRPC is (libgrpc++-dev); "
               "there is none at {}",
               fmt::join(places, ", "));
}

}  // namespace

Command serve_command(CLI::App& root) {
  const auto options = std::make_shared<ServeOptions>();
  CLI::App* app = root.add_subcommand(
      "serve", "Measure on this machine for tuners elsewhere, which name it by --machine");
  add_serve_options(*app, *options);
  app->footer(
      "It prints its address when it is ready, and ends on Ctrl-C or SIGTERM. Candidates run in a "
      "process that is\n"
      "replaced if one crashes. See docs/user/remote.md.");
  return {app, [options] { return serve(*options); },
          [options](FileRoles& files) {
            if (!options->tls_certificate.empty())
              files.read("--tls-cert", options->tls_certificate);
            if (!options->tls_key.empty()) files.read("--tls-key", options->tls_key);
          }};
}

}  // namespace hone::tool
