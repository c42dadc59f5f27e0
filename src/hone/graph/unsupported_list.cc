#include "hone/graph/unsupported_list.h"

#include <map>
#include <optional>

#include "hone/graph/some_names.h"

namespace hone::graph {
namespace {

constexpr size_t kMostKinds = 8;  // of a message

// The name and the rest of "node 'name' (Op): what is wrong".
struct OfNode {
  std::string name, rest;
};

std::optional<OfNode> split(const std::string& message) {
  constexpr std::string_view kBegin = "node '", kEnd = "' (";
  if (!message.starts_with(kBegin)) return std::nullopt;
  const size_t end = message.find(kEnd);
  if (end == std::string::npos) return std::nullopt;
  return OfNode{message.substr(kBegin.size(), end - kBegin.size()), message.substr(end + 1)};
}

}  // namespace

Status UnsupportedList::add(const Status& status) {
  if (status.code() != Code::kUnsupported) return status;
  found_.push_back(status.message());
  return ok_status();
}

Status UnsupportedList::all(const std::string& file) const {
  struct Kind {
    std::vector<std::string> nodes;
    std::string text;
  };
  std::vector<Kind> kinds;
  std::map<std::string, size_t> of_rest;
  const std::string where = file + ": ";
  for (const std::string& found : found_) {
    const std::string message = found.starts_with(where) ? found.substr(where.size()) : found;
    const std::optional<OfNode> node = split(message);
    if (!node) {
      kinds.push_back({{}, message});
      continue;
    }
    const auto [it, fresh] = of_rest.emplace(node->rest, kinds.size());
    if (fresh) kinds.push_back({{}, node->rest});
    kinds[it->second].nodes.push_back(node->name);
  }
  if (kinds.empty()) return ok_status();
  std::string text = found_[0].starts_with(where) ? where : "";
  const size_t shown = kinds.size() <= kMostKinds + 1 ? kinds.size() : kMostKinds;
  for (size_t i = 0; i < shown; ++i) {
    const Kind& kind = kinds[i];
    text += i == 0 ? "" : "; ";
    text += kind.nodes.empty() ? kind.text : some_nodes(kind.nodes) + kind.text;
  }
  if (shown < kinds.size()) text += fmt::format("; and {} more", kinds.size() - shown);
  return {Code::kUnsupported, text};
}

}  // namespace hone::graph
