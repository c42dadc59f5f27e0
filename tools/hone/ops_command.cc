#include "hone/operators.h"

#include "command.h"
#include "json_text.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

// "7 to 12, 13 to 28": one range per meaning.
std::string text_of(const std::vector<OpsetRange>& ranges) {
  std::string text;
  for (const auto& [first, last] : ranges) {
    text += text.empty() ? "" : ", ";
    text += first == last ? std::to_string(first) : fmt::format("{} to {}", first, last);
  }
  return text;
}

std::string markdown() {
  const std::vector<OperatorInfo> found = operators();
  std::string text = fmt::format(
      "# Operators\n\n"
      "The {} operators of ONNX that Hone compiles, opsets {} to {}. `hone ops --markdown` prints "
      "this page.\n\n"
      "Opsets: one range for each meaning that the operator has had. Becomes: what a node is made "
      "into. *contraction* and\n*reduction* kernels take *elementwise* followers in; a *view* "
      "costs nothing; *folded* is known when the model is\ncompiled; *other operators*: the node "
      "is replaced by simpler ones.\n\n"
      "| operator | opsets | becomes | attributes |\n|---|---|---|---|\n",
      found.size(), opsets().since, opsets().until);
  for (const OperatorInfo& op : found) {
    text += fmt::format("| {} | {} | {} | {} |\n", op.name, text_of(op.opsets), op.becomes,
                        join_names(op.attributes));
  }
  return text;
}

std::string plain_text() {
  Table table({"operator", "opsets", "becomes"}, 3);
  for (const OperatorInfo& op : operators()) table.add({op.name, text_of(op.opsets), op.becomes});
  return table.text();
}

Json to_json() {
  Json json = Json::array();
  for (const OperatorInfo& op : operators()) {
    Json ranges = Json::array();
    for (const auto& [since, until] : op.opsets)
      ranges.push_back({{"since", since}, {"until", until}});
    json.push_back({{"name", op.name},
                    {"opsets", ranges},
                    {"becomes", op.becomes},
                    {"attributes", join_names(op.attributes)}});
  }
  return json;
}

}  // namespace

Command ops_command(CLI::App& root) {
  struct Options {
    bool json = false, markdown = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* app = root.add_subcommand("ops", "List the operators that can be compiled");
  add_json(*app, options->json);
  app->add_flag("--markdown", options->markdown, "Print docs/user/operators.md")
      ->excludes("--json");
  return {app, [options] {
            fmt::print("{}", options->json       ? json_text(to_json())
                             : options->markdown ? markdown()
                                                 : plain_text());
            return ok_status();
          }};
}

}  // namespace hone::tool
