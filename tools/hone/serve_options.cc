#include "serve_options.h"

namespace hone::tool {

std::string with_brackets(const std::string& address) {
  const bool needs_them = address.find(':') != std::string::npos && !address.starts_with('[');
  return needs_them ? "[" + address + "]" : address;
}

void add_serve_options(CLI::App& app, ServeOptions& options) {
  app.add_option("--port", options.port, "The port to listen on; 0: any that is free")
      ->required()
      ->type_name("N")
      ->check(CLI::Range(0, 65535));
  app.add_option("--listen", options.listen,
                 "The address of the network interface to listen on; 0.0.0.0: all of them. Who has "
                 "the token runs any code here")
      ->type_name("ADDRESS")
      ->capture_default_str();
  app.add_option("--token-file", options.token_file,
                 "The file with the token that tuners must have, which is made if it is not there. "
                 "Default: ~/.config/hone/token")
      ->type_name("FILE");
  CLI::Option* certificate =
      app.add_option("--tls-cert", options.tls_certificate,
                     "Encrypt connections by TLS with this certificate (PEM); tuners name its "
                     "authority as tls_ca in the machine's file")
          ->type_name("FILE");
  CLI::Option* key =
      app.add_option("--tls-key", options.tls_key, "The certificate's private key (PEM)")
          ->type_name("FILE");
  certificate->needs(key);
  key->needs(certificate);
  app.add_option("--cache", options.cache,
                 "Limit of the memory for weights and inputs that tuners have sent. Default: a "
                 "quarter of this machine's or its container's")
      ->type_name("64M|1G");
}

std::vector<std::string> to_words(const ServeOptions& options) {
  std::vector<std::string> words = {"--port", std::to_string(options.port), "--listen",
                                    with_brackets(options.listen)};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {name, value});
  };
  add("--token-file", options.token_file);
  add("--tls-cert", options.tls_certificate);
  add("--tls-key", options.tls_key);
  add("--cache", options.cache);
  return words;
}

}  // namespace hone::tool
