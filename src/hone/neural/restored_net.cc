#include "hone/neural/restored_net.h"

#include "hone/cost/net/family.h"
#include "hone/cost/net/head.h"
#include "hone/graph/import_onnx.h"

namespace hone {
namespace {

namespace net = cost::net;

Result<graph::Graph> import(const std::string& bytes, std::span<const cost::Input> inputs,
                            const std::string& name) {
  graph::ImportOptions options;
  for (const cost::Input input : inputs) {
    const cost::InputShape& shape = cost::input_shapes()[static_cast<size_t>(input)];
    options.shapes[shape.name] = shape.of(1);
  }
  return graph::import_onnx_bytes(bytes.data(), bytes.size(), name, "", options);
}

// Takes the values over from the constant of that name; whether there is one of that shape.
bool take_values(const graph::Graph& from, const std::string& name, const net::Dims& dims,
                 std::vector<float>& values) {
  for (const graph::Value& value : from.values) {
    if (value.name != name || !value.constant || value.dtype != DType::kF32) continue;
    if (value.shape != dims) return false;
    const auto known = value.constant->as<float>();
    values.assign(known.begin(), known.end());
    return true;
  }
  return false;
}

}  // namespace

Result<net::Net> restore_net(const NetFile& file, const std::string& name) {
  const auto unknown = [&](std::string_view why) {
    return invalid(
        "{}: not what this version of Hone makes of {} with the options '{}' ({}): "
        "train it anew",
        name, file.family, note_of(file, "options"), why);
  };
  const Result<const net::Family*> family = net::find_family(file.family);
  if (!family.ok()) return unknown(family.status().message());
  const Result<net::GivenOptions> options =
      net::parse_options(**family, options_of(file, **family));
  if (!options.ok()) return unknown(options.status().message());
  Result<net::Net> made = net::make_net(**family, net::all_inputs(), *options);
  if (!made.ok()) return unknown(made.status().message());
  HONE_ASSIGN_OR_RETURN(const graph::Graph graph, import(file.bytes, file.inputs, name));
  for (net::Parameter& parameter : made->parameters) {
    if (!take_values(graph, parameter.name, parameter.dims, parameter.values))
      return unknown("its weights are others: " + parameter.name);
  }
  for (net::Constant& constant : made->constants) {
    if (!take_values(graph, constant.name, constant.dims, constant.values))
      return unknown("its constants are others: " + constant.name);
  }
  const Result<graph::Graph> again = import(format_net(*made, file.card), file.inputs, name);
  if (!again.ok() || graph::describe(*again) != graph::describe(graph))
    return unknown("its operators are others");
  return made;
}

Result<NetFile> file_with_head(const NetFile& file, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(net::Net restored, restore_net(file, name));
  const Result<net::Net> with_head = net::with_head(std::move(restored));
  if (!with_head.ok()) return invalid("{}: {}", name, with_head.status().message());
  NetFile more = file;
  more.bytes = format_net(*with_head, file.card);
  return more;
}

}  // namespace hone
