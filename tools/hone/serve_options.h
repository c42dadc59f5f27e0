// tools/hone/serve_options.h - the options of `hone serve` and of the program hone-serve, which
// are the same.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace hone::tool {

struct ServeOptions {
  int port = 0;
  std::string listen = "127.0.0.1";
  std::string token_file;  // empty: ~/.config/hone/token
  std::string tls_certificate, tls_key;
  std::string cache;  // empty: a quarter of the memory
};

// Returns the address as it stands before a port: one of IPv6 in brackets.
[[nodiscard]] std::string with_brackets(const std::string& address);

void add_serve_options(CLI::App& app, ServeOptions& options);
// Returns the words of a command line with these options.
[[nodiscard]] std::vector<std::string> to_words(const ServeOptions& options);

}  // namespace hone::tool
