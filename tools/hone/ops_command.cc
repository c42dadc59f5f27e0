#include <algorithm>
#include <map>

#include "hone/graph/ops/registry.h"

#include "command.h"
#include "json_text.h"
#include "option_texts.h"
#include "table.h"

namespace hone::tool {
namespace {

// All definitions of one operator, oldest first.
using Definitions = std::vector<const graph::Op*>;

std::map<std::string, Definitions> operators() {
  std::map<std::string, Definitions> found;
  for (const graph::Op* op : graph::all_ops()) {
    const bool internal = op->name.starts_with("hone.");
    if (!internal && op->until >= graph::kMinOpset) found[std::string(op->name)].push_back(op);
  }
  for (auto& [name, definitions] : found) {
    std::sort(definitions.begin(), definitions.end(),
              [](const graph::Op* a, const graph::Op* b) { return a->since < b->since; });
  }
  return found;
}

int first_opset(const graph::Op& op) { return std::max(op.since, graph::kMinOpset); }

// "7 to 12, 13 to 28": one range per meaning.
std::string opsets(const Definitions& definitions) {
  std::string text;
  for (const graph::Op* op : definitions) {
    const int first = first_opset(*op);
    text += text.empty() ? "" : ", ";
    text += first == op->until ? std::to_string(first) : fmt::format("{} to {}", first, op->until);
  }
  return text;
}

// How it becomes a kernel: what the newest definition says.
std::string_view kind_text(const graph::Op& op) {
  if (op.expand != nullptr && op.emit == nullptr) return "other operators";
  if (op.emit == nullptr && op.kind != graph::Kind::kView) return "folded";
  switch (op.kind) {
    case graph::Kind::kContraction: return "contraction";
    case graph::Kind::kReduction: return "reduction";
    case graph::Kind::kElementwise: return "elementwise";
    case graph::Kind::kView: return "view";
    case graph::Kind::kOpaque: return "own kernel";
  }
  return "";
}

// "axis, keepdims" of the newest definition.
std::string attribute_names(const graph::Op& op) {
  std::string names;
  std::string_view rest = op.attributes;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    if (item.empty()) continue;
    names += names.empty() ? "" : ", ";
    names += item.substr(0, item.find(':'));
  }
  return names;
}

std::string markdown() {
  const auto found = operators();
  std::string text = fmt::format(
      "# Operators\n\n"
      "The {} operators of ONNX that Hone compiles, opsets {} to {}. `hone ops --markdown` prints "
      "this page.\n\n"
      "Opsets: one range for each meaning that the operator has had. Becomes: what a node is made "
      "into. *contraction* and\n*reduction* kernels take *elementwise* followers in; a *view* "
      "costs nothing; *folded* is known when the model is\ncompiled; *other operators*: the node "
      "is replaced by simpler ones.\n\n"
      "| operator | opsets | becomes | attributes |\n|---|---|---|---|\n",
      found.size(), graph::kMinOpset, graph::kMaxOpset);
  for (const auto& [name, definitions] : found) {
    const graph::Op& newest = *definitions.back();
    text += fmt::format("| {} | {} | {} | {} |\n", name, opsets(definitions), kind_text(newest),
                        attribute_names(newest));
  }
  return text;
}

std::string plain_text() {
  Table table({"operator", "opsets", "becomes"}, 3);
  for (const auto& [name, definitions] : operators())
    table.add({name, opsets(definitions), std::string(kind_text(*definitions.back()))});
  return table.text();
}

Json to_json() {
  Json json = Json::array();
  for (const auto& [name, definitions] : operators()) {
    Json ranges = Json::array();
    for (const graph::Op* op : definitions)
      ranges.push_back({{"since", first_opset(*op)}, {"until", op->until}});
    json.push_back({{"name", name},
                    {"opsets", ranges},
                    {"becomes", kind_text(*definitions.back())},
                    {"attributes", attribute_names(*definitions.back())}});
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
