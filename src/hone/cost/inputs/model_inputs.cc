#include "hone/cost/inputs/model_inputs.h"

#include <algorithm>
#include <cmath>

#include "hone/analysis/cpu_measure.h"
#include "hone/analysis/features.h"
#include "hone/cost/candidate_features.h"
#include "hone/cost/inputs/input_parts.h"
#include "hone/cost/inputs/program_graph.h"

namespace hone::cost {
namespace {

constexpr size_t index(Input input) { return static_cast<size_t>(input); }

std::vector<std::string> names_of(const auto& write) {
  std::vector<std::string> names;
  RowWriter writer(names);
  write(writer);
  return names;
}

std::vector<std::vector<std::string>> make_names() {
  std::vector<std::vector<std::string>> names(kNumInputs);
  names[index(Input::kStatements)] = analysis::feature_names();
  names[index(Input::kTags)] = {tag_names().begin(), tag_names().end()};
  names[index(Input::kMask)] = {"statement"};
  names[index(Input::kSteps)] = step_names();
  names[index(Input::kStepsMask)] = {"token"};
  names[index(Input::kTask)] = names_of([](RowWriter& out) { write_task(nullptr, out); });
  names[index(Input::kMeasure)] = candidate_feature_names(FeatureSet::kMeasure);
  names[index(Input::kDevice)] =
      names_of([](RowWriter& out) { write_device(target::Cpu(), 1, out); });
  for (int64_t i = 0; i < kMaxHeads; ++i)
    names[index(Input::kHead)].push_back(fmt::format("head{}", i));
  names[index(Input::kDecisions)] = decision_names();
  names[index(Input::kAnalytic)] = {"log_seconds"};
  names[index(Input::kGraphNodes)] = names[index(Input::kTemplateNodes)] = graph_node_names();
  for (int64_t i = 0; i < kMaxGraphNodes; ++i)
    names[index(Input::kGraphEdges)].push_back(fmt::format("to{}", i));
  names[index(Input::kGraphMask)] = {"node"};
  names[index(Input::kTemplateMask)] = {"place"};
  return names;
}

std::vector<InputShape> make_shapes() {
  const auto width = [](Input input) { return std::ssize(input_names(input)); };
  return {{"statements", {kMaxStatements, width(Input::kStatements)}},
          {"tags", {kMaxStatements, width(Input::kTags)}},
          {"mask", {kMaxStatements}},
          {"steps", {kMaxStepTokens, width(Input::kSteps)}},
          {"steps_mask", {kMaxStepTokens}},
          {"task", {width(Input::kTask)}},
          {"measure", {width(Input::kMeasure)}},
          {"device", {width(Input::kDevice)}},
          {"head", {width(Input::kHead)}},
          {"decisions", {width(Input::kDecisions)}},
          {"analytic", {width(Input::kAnalytic)}},
          {"graph_nodes", {kMaxGraphNodes, width(Input::kGraphNodes)}},
          {"graph_edges", {kMaxGraphNodes, kMaxGraphNodes}},
          {"graph_mask", {kMaxGraphNodes}},
          {"template_nodes", {1 + template_loops(), width(Input::kTemplateNodes)}},
          {"template_mask", {1 + template_loops()}}};
}

// The row of what many candidates have in common, made when it is first asked for.
template <typename Key>
const std::vector<float>& shared_row(std::map<Key, std::vector<float>>& known, const Key& key,
                                     Input input, const auto& write) {
  const auto [place, added] = known.try_emplace(key);
  if (added) {
    place->second.resize(static_cast<size_t>(input_shapes()[index(input)].size()));
    RowWriter writer(place->second);
    write(writer);
  }
  return place->second;
}

constexpr Input kGraphInputs[] = {Input::kGraphNodes, Input::kGraphEdges, Input::kGraphMask,
                                  Input::kTemplateNodes, Input::kTemplateMask};

// `row` returns the place of an input, or null.
Status write_graphs(std::span<const analysis::Nest> nests, const space::Candidate& candidate,
                    const auto& row) {
  const ProgramGraph graph = build_graph(nests, candidate.state, candidate.bounds);
  write_graph(graph, row(Input::kGraphNodes), row(Input::kGraphEdges), row(Input::kGraphMask));
  float *nodes = row(Input::kTemplateNodes), *mask = row(Input::kTemplateMask);
  return nodes || mask ? write_template(graph, candidate.state, nodes, mask) : ok_status();
}

Status check_finite(Input input, std::span<const float> row) {
  if (std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); }))
    return ok_status();
  const auto bad = std::find_if(row.begin(), row.end(), [](float x) { return !std::isfinite(x); });
  const std::vector<std::string>& names = input_names(input);
  return error(Code::kInternal, "input {} of a cost model: {} is {}, expected a finite number",
               input_shapes()[index(input)].name,
               names[static_cast<size_t>(bad - row.begin()) % names.size()], *bad);
}

}  // namespace

std::vector<int64_t> InputShape::of(int64_t candidates) const {
  std::vector<int64_t> all = dims;
  all.insert(all.begin(), candidates);
  return all;
}

int64_t InputShape::size() const {
  int64_t product = 1;
  for (const int64_t extent : dims) product *= extent;
  return product;
}

std::span<const InputShape> input_shapes() {
  static const std::vector<InputShape> kShapes = make_shapes();
  return kShapes;
}

std::optional<Input> find_input(std::string_view name) {
  for (size_t i = 0; i < kNumInputs; ++i) {
    if (input_shapes()[i].name == name) return static_cast<Input>(i);
  }
  return std::nullopt;
}

const std::vector<std::string>& input_names(Input input) {
  static const std::vector<std::vector<std::string>> kNames = make_names();
  return kNames[index(input)];
}

std::string head_name(const std::string& device_key, int threads) {
  return fmt::format("{}/{}", device_key, threads);
}

InputWriter::InputWriter(InputSet wanted, std::vector<std::string> heads)
    : wanted_(wanted), heads_(std::move(heads)) {
  HONE_ASSERT(std::ssize(heads_) <= kMaxHeads, "more heads than a net can have");
}

std::vector<float> InputWriter::head_row(const Query& query) const {
  std::vector<float> row(static_cast<size_t>(kMaxHeads));
  const std::string name = head_name(target::device_key(*query.target), query.threads);
  const auto its = std::find(heads_.begin(), heads_.end(), name);
  if (its != heads_.end())
    row[static_cast<size_t>(its - heads_.begin())] = 1;
  else if (!heads_.empty())
    std::fill_n(row.begin(), heads_.size(), 1 / static_cast<float>(heads_.size()));
  return row;
}

Status InputWriter::write(const Query& query, std::span<float* const, kNumInputs> rows) {
  const auto row = [&](Input input) {
    return wanted_[index(input)] ? rows[index(input)] : nullptr;
  };
  const auto whole = [&](Input input) {
    float* to = row(input);
    return std::span(to, to ? static_cast<size_t>(input_shapes()[index(input)].size()) : 0);
  };
  for (size_t i = 0; i < kNumInputs; ++i) {
    if (wanted_[i]) std::fill_n(rows[i], input_shapes()[i].size(), 0.0F);
  }
  const space::Candidate& candidate = *query.candidate;
  const std::vector<analysis::Nest> nests =
      analysis::build_nests(candidate.state, candidate.bounds);
  const analysis::CpuMeasure measure = analysis::measure_cpu(nests, query.cpu(), query.threads);
  analytic_seconds_ = measure.seconds(query.cpu(), query.threads);
  if (wanted_[index(Input::kStatements)] || wanted_[index(Input::kTags)] ||
      wanted_[index(Input::kMask)])
    write_statements(nests, query, row(Input::kStatements), row(Input::kTags), row(Input::kMask));
  if (wanted_[index(Input::kSteps)] || wanted_[index(Input::kStepsMask)])
    write_steps(candidate, row(Input::kSteps), row(Input::kStepsMask));
  if (wanted_[index(Input::kMeasure)] || wanted_[index(Input::kDecisions)])
    write_net_features(nests, measure, query, whole(Input::kMeasure), whole(Input::kDecisions));
  if (float* to = row(Input::kAnalytic))
    *to = static_cast<float>(std::log(std::max(analytic_seconds_, 1e-12)));
  if (float* to = row(Input::kTask)) {
    const std::vector<float>& known =
        shared_row(tasks_, query.task, Input::kTask,
                   [&](RowWriter& out) { write_task(candidate.dag.get(), out); });
    std::copy(known.begin(), known.end(), to);
  }
  if (float* to = row(Input::kDevice)) {
    const std::pair<const void*, int> key(query.target, query.threads);
    const std::vector<float>& known =
        shared_row(devices_, key, Input::kDevice,
                   [&](RowWriter& out) { write_device(query.cpu(), query.threads, out); });
    std::copy(known.begin(), known.end(), to);
  }
  if (float* to = row(Input::kHead)) {
    const auto [known, added] = head_rows_.try_emplace({query.target, query.threads});
    if (added) known->second = head_row(query);
    std::copy(known->second.begin(), known->second.end(), to);
  }
  if (std::any_of(std::begin(kGraphInputs), std::end(kGraphInputs), row))
    HONE_RETURN_IF_ERROR(write_graphs(nests, candidate, row));
  for (size_t i = 0; i < kNumInputs; ++i) {
    if (!wanted_[i]) continue;
    HONE_RETURN_IF_ERROR(check_finite(static_cast<Input>(i),
                                      {rows[i], static_cast<size_t>(input_shapes()[i].size())}));
  }
  return ok_status();
}

std::vector<float> task_features(const compute::Dag& dag) {
  std::vector<float> row(static_cast<size_t>(input_shapes()[index(Input::kTask)].size()));
  RowWriter writer(row);
  write_task(&dag, writer);
  return row;
}

Result<ModelInputs> model_inputs(const Query& query, InputSet wanted) {
  ModelInputs inputs;
  std::array<float*, kNumInputs> rows{};
  for (size_t i = 0; i < kNumInputs; ++i) {
    if (!wanted[i]) continue;
    inputs.values[i].resize(static_cast<size_t>(input_shapes()[i].size()));
    rows[i] = inputs.values[i].data();
  }
  InputWriter writer(wanted);
  HONE_RETURN_IF_ERROR(writer.write(query, rows));
  return inputs;
}

}  // namespace hone::cost
