#include <map>

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

// What the page says about a domain that is not ai.onnx.
std::string note_on(const std::string& domain) {
  if (domain == "com.microsoft")
    return "What exporters, ONNX Runtime's optimizer (levels basic and extended) and its quantiser "
           "write. Each becomes the\noperators that it stands for, so that it is fused like these.";
  if (domain == "ai.onnx.preview") return "What ONNX tries out; it may change.";
  return "Of numbers; texts and maps are refused.";
}

std::string markdown() {
  const std::vector<OperatorInfo> all = operators();
  std::map<std::string, std::vector<OperatorInfo>> domains;
  for (const OperatorInfo& op : all) domains[op.domain()].push_back(op);
  std::string text = fmt::format(
      "# Operators\n\n"
      "The {} operators of ONNX that Hone compiles, opsets {} to {}. `hone ops --markdown` prints "
      "this page.\n\n"
      "Opsets: one range for each meaning that the operator has had. Becomes: what a node is made "
      "into. *contraction* and\n*reduction* kernels take *elementwise* followers in; a *view* "
      "costs nothing; *folded* is known when the model is\ncompiled; *other operators*: the node "
      "is replaced by simpler ones.\n\n"
      "| operator | opsets | becomes | attributes |\n|---|---|---|---|\n",
      domains[""].size(), opsets().since, opsets().until);
  for (const OperatorInfo& op : domains[""]) {
    text += fmt::format("| {} | {} | {} | {} |\n", op.name, text_of(op.opsets), op.becomes,
                        join_names(op.attributes));
  }
  domains.erase("");
  for (const auto& [domain, found] : domains) {
    text += fmt::format("\n## {}\n\n{}\n\n| operator | becomes | attributes |\n|---|---|---|\n",
                        domain, note_on(domain));
    for (const OperatorInfo& op : found) {
      text += fmt::format("| {} | {} | {} |\n", op.name.substr(domain.size() + 1), op.becomes,
                          join_names(op.attributes));
    }
  }
  text +=
      "\n## Functions of a model\n\n"
      "A model may bring functions of its own, of any domain: each call is replaced by the "
      "function's nodes, whatever opset\nthat was written for. A function goes before an operator "
      "of its name. One that calls itself is refused.\n\n"
      "## Loops and branches\n\n"
      "A Loop or Scan of at most 64 turns is unrolled; a run repeats others, whose number of turns "
      "and condition may be known\nto the run only. Of an If a run takes one branch, unless computing "
      "both is cheap. [limits.md](limits.md) says what they\nmay do.\n\n"
      "## Sequences and optional values\n\n"
      "They are resolved when the model is imported, also where they pass through an If, Loop or "
      "Scan: positions, numbers of\nparts and whether there is a value have to be known then, but "
      "for a sequence to which a loop that a run repeats appends\n"
      "one tensor in each turn ([limits.md](limits.md#loops-and-branches-that-only-the-run-decides)"
      "). Inputs and outputs of the\n"
      "model are tensors; an input that is an optional tensor is one that every run gives.\n";
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
