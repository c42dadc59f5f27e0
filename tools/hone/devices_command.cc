
#include "hone/target/target.h"

#include "command.h"
#include "json_text.h"
#include "option_texts.h"

namespace hone::tool {
namespace {

Json to_json(const target::Target& t) {
  Json caches = Json::array();
  for (const target::Cache& cache : t.caches) {
    caches.push_back({{"level", cache.level},
                      {"bytes", cache.bytes},
                      {"line_bytes", cache.line_bytes},
                      {"shared_by", cache.shared_by}});
  }
  return {{"name", t.name},
          {"key", target::device_key(t)},
          {"triple", t.triple},
          {"cpu", t.cpu},
          {"cores", t.cores},
          {"ghz", t.ghz},
          {"vector_bytes", t.vector_bytes},
          {"vector_registers", t.vector_registers},
          {"caches", caches}};
}

Status show_devices(bool as_json) {
  Json json = Json::array();
  std::string text;
  for (const std::string& name : target::names()) {
    HONE_ASSIGN_OR_RETURN(const target::Target target, target::find(name));
    if (as_json) {
      json.push_back(to_json(target));
    } else {
      text += fmt::format("{}{}\n", text.empty() ? "" : "\n", target::describe(target));
      while (text.size() > 1 && text[text.size() - 2] == '\n') text.pop_back();
    }
  }
  fmt::print("{}", as_json ? json_text(json) : text);
  return ok_status();
}

}  // namespace

Command devices_command(CLI::App& root) {
  struct Options {
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* app =
      root.add_subcommand("devices", "List this machine and the devices that can be compiled for");
  add_json(*app, options->json);
  return {app, [options] { return show_devices(options->json); }};
}

}  // namespace hone::tool
