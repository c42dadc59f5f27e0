#include "plan.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "hone/base/closest_name.h"
#include "hone/compile.h"
#include "hone/tune.h"

namespace hone::ort {
namespace {

// How often a graph is divided anew. Each time costs a part of a second, as a refusal comes before
// code is made, and names up to eight kinds of nodes.
constexpr int kMostDivisions = 32;

std::string without(std::string text, const std::string& part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
    text.erase(at, part.size());
  return text;
}

// Returns whether a message names the node, or a node that Hone has made of it.
bool names_node(const std::string& message, const std::string& name) {
  for (const char* end : {"'", "#", "/"}) {
    if (message.find(fmt::format("'{}{}", name, end)) != std::string::npos) return true;
  }
  return false;
}

// Names that the user gave shapes for must be of the graph.
Status check_shape_names(const Graph& graph, const ModelOptions& given) {
  std::set<std::string> names(graph.inputs.begin(), graph.inputs.end());
  for (const auto& [name, value] : graph.values) {
    for (const GraphDim& dim : value.dims) names.insert(dim.symbol);
  }
  for (const auto& [name, range] : given.ranges) {
    for (const DimRange& dim : range) names.insert(dim.symbol);
  }
  const auto check = [&](const std::string& name) {
    if (names.contains(name)) return ok_status();
    return invalid("{}: option shape: the model has no input '{}', and no dimension of that name{}",
                   kProviderName, name, did_you_mean(name, {names.begin(), names.end()}));
  };
  for (const auto& [name, unused] : given.shapes) HONE_RETURN_IF_ERROR(check(name));
  for (const auto& [name, unused] : given.ranges) HONE_RETURN_IF_ERROR(check(name));
  return ok_status();
}

}  // namespace

std::vector<Group> Planner::groups_of(const Graph& graph, std::vector<bool>& usable) {
  const TiedSizes sizes(graph, settings_.model);
  std::vector<Group> groups;
  for (bool again = true; again;) {
    groups = group_nodes(graph, usable);
    again = false;
    for (const Group& group : groups) again |= sizes.leave_out_others(group, usable);
  }
  std::erase_if(groups, [&](const Group& group) {
    return std::none_of(group.nodes.begin(), group.nodes.end(),
                        [&](size_t i) { return support_.has_work(graph.nodes[i]); });
  });
  return groups;
}

std::string Planner::file_for(const Graph& graph) {
  // Records of the database carry the name of the file.
  std::string stem = std::filesystem::path(graph.model_path).stem().string();
  if (stem.empty()) stem = "model";
  if (files_ > 0) stem += fmt::format("_{}", files_);
  ++files_;
  return folder_.file(stem);
}

Status Planner::compile_into(const Graph& graph, const Group& group, double budget,
                             Attempt& attempt) {
  HONE_ASSIGN_OR_RETURN(GroupModel model, make_group_model(api_, graph, group, weights_));
  const std::string file = file_for(graph);
  attempt.library = file + ".so";
  const std::string onnx = file + ".onnx";
  HONE_RETURN_IF_ERROR(write_file_atomic(onnx, model.bytes));
  CompileOptions options;
  options.model = options_of_group(graph, group, settings_.model);
  options.model.ranges.merge(TiedSizes(graph, settings_.model).ranges_between_parts(group));
  options.model.bind = std::move(model.bound);
  options.target.threads = settings_.threads;
  options.target.accuracy = settings_.accuracy;
  options.records = settings_.records;
  // Tuning makes the database, which need not be there before.
  if (settings_.budget > 0 && budget == 0) options.records.use_db = false;
  options.library.sync = false;
  Status status;
  if (budget > 0) {
    const TuneOptions tuning{.compile = options, .search = {.budget_seconds = budget}};
    status = hone::tune(onnx, attempt.library, tuning).status();
  } else {
    status = hone::compile(onnx, attempt.library, options).status();
  }
  if (status.ok()) return status;
  return {status.code(), without(status.message(), onnx + ": ")};
}

Planner::Attempt Planner::compile(const Graph& graph, const Group& group, double budget) {
  Attempt attempt{.names = node_names(graph, group)};
  attempt.failure = compile_into(graph, group, budget, attempt);
  return attempt;
}

// Marks the nodes that Hone refused, or all of the group if it names none, as not usable.
void Planner::leave_out(const Graph& graph, const Group& group, const Attempt& attempt,
                        std::vector<bool>& usable) {
  const std::string& message = attempt.failure.message();
  std::set<std::string> inputs;  // those that another provider computes and Hone cannot take
  for (const std::string& name : group.inputs) {
    const bool of_model =
        std::find(graph.inputs.begin(), graph.inputs.end(), name) != graph.inputs.end();
    if (!of_model && message.find(fmt::format("'{}'", name)) != std::string::npos)
      inputs.insert(name);
  }
  std::vector<size_t> named;
  for (size_t n = 0; n < group.nodes.size(); ++n) {
    const std::vector<std::string>& read = graph.nodes[group.nodes[n]].inputs;
    const bool reads = std::any_of(read.begin(), read.end(),
                                   [&](const std::string& name) { return inputs.contains(name); });
    if (reads || names_node(message, attempt.names[n])) named.push_back(group.nodes[n]);
  }
  const std::vector<size_t>& left = named.empty() ? group.nodes : named;
  for (const size_t i : left) usable[i] = false;
  log(api_, logger_, OrtSeverity::kWarning,
      fmt::format("{} of {} nodes are left to other providers: {}", left.size(), group.nodes.size(),
                  message));
}

void Planner::tune(const Graph& graph, std::vector<Part>& parts) {
  const double budget = settings_.budget / static_cast<double>(parts.size());
  for (Part& part : parts) {
    const Attempt tuned = compile(graph, part.group, budget);
    if (tuned.failure.ok()) {
      part.library = tuned.library;
    } else if (settings_.must_compile) {
      part.failure = tuned.failure;
    } else {
      log(api_, logger_, OrtSeverity::kWarning, "a part is not tuned: " + tuned.failure.message());
    }
  }
}

std::vector<Part> Planner::plan(const Graph& graph) {
  std::vector<bool> usable;
  for (const GraphNode& node : graph.nodes) usable.push_back(support_.may_compile(graph, node));
  if (const Status status = check_shape_names(graph, settings_.model); !status.ok()) {
    const std::vector<Group> groups = groups_of(graph, usable);
    return groups.empty() ? std::vector<Part>() : std::vector<Part>{{groups[0], "", status}};
  }
  std::map<std::vector<size_t>, std::string> libraries;  // of the nodes of a group
  for (int division = 0; division < kMostDivisions; ++division) {
    std::vector<Part> parts;
    bool divide = false;
    for (Group& group : groups_of(graph, usable)) {
      std::string& library = libraries[group.nodes];
      if (library.empty()) {
        const Attempt attempt = compile(graph, group, 0);
        if (!attempt.failure.ok() && settings_.must_compile)
          return {{std::move(group), "", attempt.failure}};
        if (!attempt.failure.ok()) {
          leave_out(graph, group, attempt, usable);
          divide = true;
          break;
        }
        library = attempt.library;
      }
      parts.push_back({std::move(group), library, ok_status()});
    }
    if (divide) continue;
    if (settings_.budget > 0) tune(graph, parts);
    return parts;
  }
  log(api_, logger_, OrtSeverity::kWarning,
      fmt::format("nothing is compiled: there were {} refusals", kMostDivisions));
  return {};
}

}  // namespace hone::ort
