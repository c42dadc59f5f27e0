#include "hone/neural/net_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "hone/analysis/features.h"
#include "hone/base/file.h"
#include "hone/cost/candidate_features.h"
#include "hone/cost/fingerprint.h"
#include "hone/graph/onnx_writer.h"
#include "hone/trial/schedule_version.h"

namespace hone {
namespace {

using cost::net::Net;
using cost::net::Node;
using cost::net::Op;

constexpr int kOpset = 17;
constexpr std::string_view kNote = "hone.card.";
constexpr std::string_view kFingerprint = "hone.fingerprint.";
constexpr const char* kFileVersion = "2";  // since files have fingerprints
constexpr const char* kFamily = "hone.family";
constexpr const char* kScale = "hone.log_seconds_per_score";
constexpr const char* kTellsTime = "hone.tells_time";
constexpr const char* kHeads = "hone.heads";

// What a net must agree on with this program: the note's key, how people call it, and its value.
struct Version {
  const char* key;
  const char* name;
  std::string value;
};
// `inputs`: names of what the net reads.
std::vector<Version> versions(std::span<const std::string> inputs) {
  std::vector<Version> all = {
      {"hone.inputs", "inputs", std::to_string(cost::kInputVersion)},
      {"hone.features", "features",
       fmt::format("{}.{}", analysis::kFeatureVersion, cost::kMeasureFeatureVersion)},
      {"hone.space", "the space of schedules", kScheduleVersion},
      {"hone.file", "files", kFileVersion}};
  if (std::find(inputs.begin(), inputs.end(), "decisions") != inputs.end())
    all.push_back({"hone.decisions", "decisions", std::to_string(cost::kCandidateFeatureVersion)});
  return all;
}

Tensor floats(const Shape& shape, std::span<const float> values) {
  Tensor tensor(DType::kF32, shape);
  HONE_ASSERT(static_cast<size_t>(tensor.size()) == values.size(), "one value per element");
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return tensor;
}

Tensor integers(std::span<const int64_t> values) {
  Tensor tensor(DType::kI64, {std::ssize(values)});
  std::copy(values.begin(), values.end(), tensor.as<int64_t>().begin());
  return tensor;
}

// The name of an operator that is one of ONNX as it is; "" of others.
std::string_view plain_operator(Op op) {
  switch (op) {
    case Op::kMatmul: return "MatMul";
    case Op::kAdd: return "Add";
    case Op::kSub: return "Sub";
    case Op::kMul: return "Mul";
    case Op::kDiv: return "Div";
    case Op::kRelu: return "Relu";
    case Op::kSigmoid: return "Sigmoid";
    case Op::kTanh: return "Tanh";
    case Op::kExp: return "Exp";
    default: return "";
  }
}

// At commas; "" has no part.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

class NetWriter {
 public:
  NetWriter(const Net& net, NetWeights weights)
      : net_(net), weights_(weights), out_(net.family, kOpset) {}

  graph::OnnxWriter write() && {
    for (const Node& node : net_.nodes) names_.push_back(write_node(node));
    for (const cost::net::NetOutput& output : net_.outputs) {
      const auto place = static_cast<size_t>(output.node);
      out_.node("Identity", {names_[place]}, {output.name});
      out_.output(output.name, net_.nodes[place].dims);
    }
    return std::move(out_);
  }

 private:
  // The name of the node's value.
  std::string write_node(const Node& node) {
    const auto source = static_cast<size_t>(node.source);
    if (node.op == Op::kInput) {
      const cost::net::NetInput& input = net_.inputs[source];
      out_.input(input.name, node.dims);
      return input.name;
    }
    if (node.op == Op::kParameter) {
      const cost::net::Parameter& parameter = net_.parameters[source];
      if (weights_ == NetWeights::kInputs)
        out_.input(parameter.name, parameter.dims);
      else
        out_.constant(parameter.name, floats(parameter.dims, parameter.values));
      return parameter.name;
    }
    if (node.op == Op::kConstant) {
      const cost::net::Constant& constant = net_.constants[source];
      out_.constant(constant.name, floats(constant.dims, constant.values));
      return constant.name;
    }
    if (node.op == Op::kDropout) return input_of(node, 0);
    std::string name = fmt::format("value{}", names_.size());
    std::vector<std::string> inputs;
    for (const int input : node.inputs) inputs.push_back(names_[static_cast<size_t>(input)]);
    if (const std::string_view type = plain_operator(node.op); !type.empty()) {
      out_.node(std::string(type), inputs, {name});
      return name;
    }
    write_others(node, inputs, name);
    return name;
  }

  void write_others(const Node& node, std::vector<std::string> inputs, const std::string& name) {
    const auto list = [&](const char* what, std::span<const int64_t> values) {
      out_.constant(fmt::format("{}.{}", name, what), integers(values));
      inputs.push_back(fmt::format("{}.{}", name, what));
    };
    const auto number = [&](const char* what, double value) {
      const float narrow = static_cast<float>(value);
      out_.constant(fmt::format("{}.{}", name, what), floats({}, {&narrow, 1}));
      inputs.push_back(fmt::format("{}.{}", name, what));
    };
    const std::vector<int64_t>& integers = node.integers;
    switch (node.op) {
      case Op::kSoftmax: out_.node("Softmax", inputs, {name}, {{"axis", int64_t{-1}}}); return;
      case Op::kLayerNorm:
        out_.node("LayerNormalization", inputs, {name},
                  {{"axis", int64_t{-1}}, {"epsilon", static_cast<float>(node.numbers[0])}});
        return;
      case Op::kTranspose: out_.node("Transpose", inputs, {name}, {{"perm", integers}}); return;
      case Op::kReshape:
        list("shape", integers);
        out_.node("Reshape", inputs, {name});
        return;
      case Op::kReduceSum:
        list("axes", std::span(integers).first(1));
        out_.node("ReduceSum", inputs, {name}, {{"keepdims", integers[1]}});
        return;
      case Op::kReduceMean:
      case Op::kReduceMax:
        out_.node(node.op == Op::kReduceMax ? "ReduceMax" : "ReduceMean", inputs, {name},
                  {{"axes", std::vector<int64_t>{integers[0]}}, {"keepdims", integers[1]}});
        return;
      case Op::kConcat: out_.node("Concat", inputs, {name}, {{"axis", integers[0]}}); return;
      case Op::kSlice:
        list("starts", std::span(integers).subspan(1, 1));
        list("ends", std::span(integers).subspan(2, 1));
        list("axes", std::span(integers).first(1));
        out_.node("Slice", inputs, {name});
        return;
      case Op::kGreater:
        out_.node("Greater", inputs, {name + ".bool"});
        out_.node("Cast", {name + ".bool"}, {name}, {{"to", static_cast<int64_t>(DType::kF32)}});
        return;
      case Op::kClip:
        number("lowest", node.numbers[0]);
        number("highest", node.numbers[1]);
        out_.node("Clip", inputs, {name});
        return;
      default: HONE_ASSERT(false, "an operator of nets that is not written as ONNX");
    }
  }

  [[nodiscard]] const std::string& input_of(const Node& node, size_t i) const {
    return names_[static_cast<size_t>(node.inputs[i])];
  }

  const Net& net_;
  NetWeights weights_;
  graph::OnnxWriter out_;
  std::vector<std::string> names_;  // of the nodes' values
};

}  // namespace

std::string format_net(const Net& net, const NetCard& card, NetWeights weights) {
  graph::OnnxWriter out = NetWriter(net, weights).write();
  out.note(kFamily, net.family);
  std::vector<std::string> inputs;
  for (const cost::net::NetInput& input : net.inputs) inputs.push_back(input.name);
  for (const Version& version : versions(inputs)) out.note(version.key, version.value);
  for (const std::string& part : cost::fingerprint_parts(inputs))
    out.note(std::string(kFingerprint) + part, cost::fingerprint(part));
  out.note(kScale, fmt::format("{}", card.log_seconds_per_score));
  if (card.tells_time) out.note(kTellsTime, "1");
  if (!card.heads.empty()) out.note(kHeads, fmt::format("{}", fmt::join(card.heads, ",")));
  for (const auto& [key, value] : card.notes) out.note(std::string(kNote) + key, value);
  return out.bytes();
}

Status write_net(const std::string& path, const Net& net, const NetCard& card) {
  return write_file_atomic(path, format_net(net, card));
}

Result<NetFile> read_net(const std::string& path) {
  NetFile file;
  HONE_ASSIGN_OR_RETURN(file.bytes, read_file(path));
  HONE_ASSIGN_OR_RETURN(const graph::OnnxSummary summary,
                        graph::read_onnx_summary(file.bytes, path));
  const auto find = [&](const std::string& key) {
    const auto found = summary.notes.find(key);
    return found == summary.notes.end() ? std::string() : found->second;
  };
  file.family = find(kFamily);
  if (file.family.empty())
    return invalid("{}: an ONNX model, but not a cost model that hone train wrote", path);
  for (const Version& version : versions(summary.inputs)) {
    if (const std::string found = find(version.key); found != version.value)
      return invalid("{}: trained for version {} of {}, expected {}: train it anew", path,
                     found.empty() ? "(none)" : found, version.name, version.value);
  }
  const std::string scale = find(kScale);
  double& value = file.card.log_seconds_per_score;
  const auto [end, code] = std::from_chars(scale.data(), scale.data() + scale.size(), value);
  if (code != std::errc() || end != scale.data() + scale.size() || !(value > 0))
    return invalid("{}: {} is '{}', expected a positive number", path, kScale, scale);
  file.card.tells_time = find(kTellsTime) == "1";
  for (const std::string& name : summary.inputs) {
    const std::optional<cost::Input> input = cost::find_input(name);
    if (!input) return invalid("{}: reads an input {} that cost models do not have", path, name);
    file.inputs.push_back(*input);
  }
  for (const std::string& part : cost::fingerprint_parts(summary.inputs)) {
    HONE_RETURN_IF_ERROR(
        cost::check_fingerprint(part, find(std::string(kFingerprint) + part), path));
  }
  file.card.heads = split(find(kHeads));
  const bool reads_head =
      std::find(file.inputs.begin(), file.inputs.end(), cost::Input::kHead) != file.inputs.end();
  if (file.card.heads.size() > static_cast<size_t>(cost::kMaxHeads) ||
      reads_head == file.card.heads.empty()) {
    return invalid("{}: {} is '{}', expected {}", path, kHeads, find(kHeads),
                   reads_head ? fmt::format("1 to {} devices", cost::kMaxHeads) : "none");
  }
  for (const auto& [key, text] : summary.notes) {
    if (key.starts_with(kNote)) file.card.notes[key.substr(kNote.size())] = text;
  }
  return file;
}

std::string options_of(const NetFile& file, const cost::net::Family& family) {
  std::string text = note_of(file, "options");
  const auto given = cost::net::parse_options(family, text);
  if (!given.ok()) return text;  // whoever reads it says so
  for (const cost::net::FamilyOption& option : family.options) {
    // A switch with the name of an input; TabNet's "steps" is a number that has such a name.
    const bool is_switch = option.whole && option.lowest == 0 && option.highest == 1;
    const std::optional<cost::Input> input = cost::find_input(option.name);
    if (!is_switch || !input || given->contains(std::string(option.name))) continue;
    const bool reads =
        std::find(file.inputs.begin(), file.inputs.end(), *input) != file.inputs.end();
    if (reads == (option.value != 0)) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", option.name, reads ? 1 : 0);
  }
  return text;
}

std::string note_of(const NetFile& file, const std::string& key) {
  const auto found = file.card.notes.find(key);
  return found == file.card.notes.end() ? "" : found->second;
}

Status load_weights(const NetFile& file, const std::string& path, Net& net) {
  HONE_ASSIGN_OR_RETURN(const auto found, graph::read_onnx_constants(file.bytes, path));
  const auto load = [&](auto& one) -> Status {
    const auto place = found.find(one.name);
    if (place == found.end())
      return invalid("{}: has no {}, expected a {} of the same options", path, one.name,
                     net.family);
    const Tensor& tensor = place->second;
    if (tensor.dtype() != DType::kF32 || tensor.shape() != one.dims)
      return invalid("{}: its {} is {}, expected {}: a {} of the same options", path, one.name,
                     to_string(tensor.shape()), to_string(one.dims), net.family);
    const auto values = tensor.as<float>();
    one.values.assign(values.begin(), values.end());
    return ok_status();
  };
  for (cost::net::Parameter& parameter : net.parameters) HONE_RETURN_IF_ERROR(load(parameter));
  for (cost::net::Constant& constant : net.constants) HONE_RETURN_IF_ERROR(load(constant));
  return ok_status();
}

}  // namespace hone
