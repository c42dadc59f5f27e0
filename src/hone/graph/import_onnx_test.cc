#include "hone/graph/import_onnx.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "hone/graph/passes/pass.h"
#include "hone/graph/tasks.h"
#include "hone/graph/test_model.h"

namespace hone::graph {
namespace {

Status import_status(const std::string& bytes, const ImportOptions& options = {}) {
  return import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "", options).status();
}

// The message names the file and holds `part`.
void expect_error(const Status& status, Code code, const std::string& part) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  EXPECT_NE(status.message().find(".onnx"), std::string::npos) << status.message();
}

TestModel small_network() {
  Rng rng(1);
  TestModel model;
  model.input("x", {1, 3, 8, 8})
      .constant("w", random_tensor({4, 3, 3, 3}, rng))
      .constant("b", random_tensor({4}, rng))
      .constant("w2", random_tensor({5, 64}, rng))
      .node("Conv", {"x", "w", "b"}, {"c"}, {{"pads", Shape{1, 1, 1, 1}}, {"strides", Shape{2, 2}}})
      .node("Relu", {"c"}, {"r"})
      .node("Flatten", {"r"}, {"f"})
      .node("Gemm", {"f", "w2"}, {"y"}, {{"transB", int64_t{1}}})
      .output("y");
  return model;
}

class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / fmt::format("hone_import_{}", getpid())) {
    std::filesystem::create_directories(path_ / "inner");
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

// Counts how often a file is opened.
class Openings {
 public:
  explicit Openings(const std::string& path) : fd_(inotify_init1(IN_NONBLOCK)) {
    EXPECT_GE(inotify_add_watch(fd_, path.c_str(), IN_OPEN), 0);
  }
  ~Openings() { close(fd_); }
  [[nodiscard]] int64_t count() const {
    char events[sizeof(inotify_event) * 100];
    const ssize_t bytes = read(fd_, events, sizeof events);
    return bytes <= 0 ? 0 : bytes / static_cast<ssize_t>(sizeof(inotify_event));
  }

 private:
  int fd_;
};

TEST(import_onnx, reads_a_small_network) {
  const Graph graph = small_network().graph();
  ASSERT_EQ(graph.nodes.size(), 4u);
  EXPECT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(graph.nodes[0].type, "Conv");
  EXPECT_EQ(graph.value(graph.nodes[0].outputs[0]).shape, (Shape{1, 4, 4, 4}));
  EXPECT_EQ(graph.value(graph.outputs[0]).shape, (Shape{1, 5}));
  EXPECT_EQ(graph.output_names, std::vector<std::string>{"y"});
}

TEST(import_onnx, rejects_foreign_files) {
  expect_error(import_status(""), Code::kInvalid, "empty");
  expect_error(import_status("\x7f"
                             "ELF\x02\x01\x01 some library"),
               Code::kInvalid, "not an ONNX file");
  expect_error(import_status(std::string(100, '\0')), Code::kInvalid, "not an ONNX file");
  expect_error(import_onnx("/nonexistent/m.onnx").status(), Code::kNotFound, "no such file");
}

TEST(import_onnx, tells_every_truncation) {
  const std::string bytes = small_network().bytes();
  for (size_t size = 1; size < bytes.size(); ++size) {
    const Status status = import_status(bytes.substr(0, size));
    EXPECT_EQ(status.code(), Code::kInvalid)
        << size << " of " << bytes.size() << ": " << status.message();
    EXPECT_NE(status.message().find("truncated"), std::string::npos)
        << size << ": " << status.message();
  }
}

TEST(import_onnx, rejects_unknown_opsets) {
  expect_error(
      TestModel(6).input("x", {1}).node("Relu", {"x"}, {"y"}).output("y").import().status(),
      Code::kUnsupported, "opset 6, expected 7 to 28");
  expect_error(
      TestModel(29).input("x", {1}).node("Relu", {"x"}, {"y"}).output("y").import().status(),
      Code::kUnsupported, "opset 29");
}

TEST(import_onnx, lists_all_unknown_operators_at_once) {
  TestModel model;
  model.input("x", {1})
      .node("Frobnicate", {"x"}, {"a"})
      .node("Relu", {"a"}, {"b"})
      .node("Frobnicate", {"b"}, {"c"})
      .node("Gelu", {"c"}, {"d"}, {}, "com.example")
      .node("hone.Copy", {"d"}, {"e"})
      .output("e");
  const Status status = model.import().status();
  expect_error(status, Code::kUnsupported, "Frobnicate (nodes 'node_a', 'node_c')");
  expect_error(status, Code::kUnsupported, "com.example.Gelu (node 'node_d')");
  expect_error(status, Code::kUnsupported, "hone.Copy");
}

TEST(import_onnx, lists_all_that_is_not_supported_at_once) {
  TestModel types(17);
  types.input("a", {2}, static_cast<DType>(8)).input("b", {2}, static_cast<DType>(14));
  types.input("c", {2}).node("Frobnicate", {"c"}, {"y"}).output("y");
  Status status = import_status(types.bytes());
  for (const char* part : {"input 'a'", "input 'b'", "Frobnicate (node 'node_y')"})
    expect_error(status, Code::kUnsupported, part);

  // Nodes after an unsupported one are judged where they don't depend on it.
  TestModel nodes(17);
  nodes.input("x", {2, 3}).input("s", {2}, DType::kI64);
  nodes.node("Reshape", {"x", "s"}, {"a"}).node("Relu", {"a"}, {"b"});
  nodes.node("Gemm", {"b", "b", "b"}, {"c"}).node("Expand", {"x", "s"}, {"d"});
  status = import_status(nodes.output("c").output("d").bytes());
  expect_error(status, Code::kUnsupported, "'node_a' (Reshape)");
  expect_error(status, Code::kUnsupported, "'node_d' (Expand)");
  EXPECT_EQ(status.message().find("node_c"), std::string::npos) << status.message();
  EXPECT_EQ(status.message().find("m.onnx"), status.message().rfind("m.onnx"));
}

TEST(import_onnx, knows_from_which_opset_an_operator_is) {
  EXPECT_TRUE(
      TestModel(14).input("x", {1}).node("HardSwish", {"x"}, {"y"}).output("y").import().ok());
  expect_error(
      TestModel(13).input("x", {1}).node("HardSwish", {"x"}, {"y"}).output("y").import().status(),
      Code::kUnsupported, "HardSwish");
}

TEST(import_onnx, wants_shapes_for_open_inputs) {
  TestModel model;
  model.open_input("x", {"batch", "3"}).node("Relu", {"x"}, {"y"}).output("y");
  expect_error(
      import_status(model.bytes()), Code::kInvalid,
      "open shape [batch, 3]: give its shape (ModelOptions::shapes, such as --shape x=1x3)");
  ImportOptions options;
  options.shapes["x"] = {2, 3};
  EXPECT_TRUE(import_status(model.bytes(), options).ok());
  options.shapes["x"] = {2, 3, 1};
  expect_error(import_status(model.bytes(), options), Code::kInvalid, "[2, 3, 1]");
  options.shapes["x"] = {-1, 3};
  expect_error(import_status(model.bytes(), options), Code::kInvalid, "[-1, 3]");
  options.shapes["x"] = {0, 3};  // nothing to compute, but no error
  EXPECT_TRUE(import_status(model.bytes(), options).ok());
  options.shapes = {{"x", {2, 3}}, {"z", {1}}};
  expect_error(import_status(model.bytes(), options), Code::kInvalid, "'z', which is no input");
}

TEST(import_onnx, names_all_open_inputs_and_names_that_are_none) {
  TestModel model;
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) {
    names.push_back(fmt::format("x{}", i));
    model.open_input(names.back(), {"batch", "3"});
  }
  model.node("Sum", names, {"y"}).output("y");
  expect_error(import_status(model.bytes()), Code::kInvalid,
               "5 inputs have open shapes: 'x0' [batch, 3], 'x1' [batch, 3], ");
  expect_error(import_status(model.bytes()), Code::kInvalid, "--shape x3=1x3 --shape x4=1x3)");
  ImportOptions options;
  options.shapes["X0"] = {2, 3};
  expect_error(import_status(model.bytes(), options), Code::kInvalid,
               "a shape is given for 'X0', which is no input: the inputs are 'x0', 'x1', 'x2' and "
               "2 more");
}

TEST(import_onnx, does_not_advise_to_bind_images) {
  TestModel model;
  model.input("images", {2, 30})
      .node("ReduceMax", {"images"}, {"most"}, {{"keepdims", int64_t{0}}})
      .node("Cast", {"most"}, {"count"}, {{"to", int64_t{7}}})
      .node("Reshape", {"count", "axes1"}, {"list"})
      .constant("axes1", ints({1}))
      .node("Reshape", {"images", "list"}, {"y"})
      .output("y");
  expect_error(import_status(model.bytes()), Code::kUnsupported,
               "it depends on the data of the input 'images', which differ from run to run");
}

TEST(import_onnx, takes_another_batch_than_the_models_own) {
  TestModel model;
  model.input("x", {1, 2, 6})
      .constant("heads", ints({1, 2, 3, 2}))
      .constant("flat", ints({1, -1}))
      .constant("rows", ints({-1, 6}))
      .constant("apart", ints({1, 2, 6}))
      .node("Reshape", {"x", "heads"}, {"y"})
      .node("Reshape", {"y", "flat"}, {"z"})
      .node("Reshape", {"x", "rows"}, {"merged"})
      .node("Reshape", {"merged", "apart"}, {"again"})
      .output("y")
      .output("z")
      .output("again");
  ImportOptions options;
  options.shapes["x"] = {4, 2, 6};
  const std::string bytes = model.bytes();
  const Result<Graph> graph = import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "", options);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->value(graph->outputs[0]).shape, (Shape{4, 2, 3, 2}));
  EXPECT_EQ(graph->value(graph->outputs[1]).shape, (Shape{4, 12}));
  EXPECT_EQ(graph->value(graph->outputs[2]).shape, (Shape{4, 2, 6}));
  options.shapes["x"] = {1, 2, 7};
  expect_error(import_status(model.bytes(), options), Code::kInvalid,
               "cannot reshape [1, 2, 7] to [1, 2, 3, 2]");
  options.shapes["x"] = {4, 12};
  expect_error(import_status(model.bytes(), options), Code::kInvalid, "declared as [1, 2, 6]");
}

TEST(import_onnx, names_the_inputs_that_decide_a_shape) {
  TestModel model;
  model.input("x", {2, 6})
      .input("rows", {1}, DType::kI64)
      .input("columns", {1}, DType::kI64)
      .input("bias", {1})
      .node("Concat", {"rows", "columns"}, {"shape"}, {{"axis", int64_t{0}}})
      .node("Reshape", {"x", "shape"}, {"y"})
      .node("Add", {"y", "bias"}, {"z"})
      .output("z");
  std::vector<std::string> unbound;
  ImportOptions options;
  options.unbound = &unbound;
  expect_error(import_status(model.bytes(), options), Code::kUnsupported,
               "bind them (ModelOptions::bind, --bind columns=NUMBER --bind rows=NUMBER)");
  EXPECT_EQ(unbound, (std::vector<std::string>{"columns", "rows"}));
  options.bind["rows"] = ints({3});
  expect_error(
      import_status(model.bytes(), options), Code::kUnsupported,
      "it comes from the input 'columns': bind it (ModelOptions::bind, --bind columns=NUMBER)");

  const Folder folder;
  const std::string path = folder.write("m.onnx", model.bytes());
  const std::map<std::string, Tensor> available = {
      {"rows", ints({3})}, {"columns", ints({4})}, {"bias", floats({1}, {1})}};
  const auto graph = import_onnx_binding(path, {}, available);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->value(graph->outputs[0]).shape, (Shape{3, 4}));
  ASSERT_EQ(graph->inputs.size(), 2u);  // x and bias, whose value is known but decides no shape
  EXPECT_EQ(graph->value(graph->inputs[1]).name, "bias");
  expect_error(import_onnx_binding(path, {}, {{"rows", ints({3})}}).status(), Code::kUnsupported,
               "'columns'");
}

TEST(import_onnx, a_model_whose_inputs_are_bound_keeps_its_weights) {
  TestModel model;
  model.input("x", {2, 3}).input("shape", {2}, DType::kI64);
  model.constant("w", floats({3, 2}, {1, 2, 3, 4, 5, 6}));
  model.node("MatMul", {"x", "w"}, {"p"}).node("Reshape", {"p", "shape"}, {"y"}).output("y");
  const Folder folder;
  const auto graph =
      import_onnx_binding(folder.write("m.onnx", model.bytes()), {}, {{"shape", ints({4, 1})}});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Value& w = graph->value(graph->nodes[0].inputs[1]);
  EXPECT_EQ(relative_error(*w.constant, floats({3, 2}, {1, 2, 3, 4, 5, 6})), 0);
}

TEST(import_onnx, a_bound_value_has_the_declared_type_and_shape) {
  TestModel model;
  model.input("x", {2}).input("y", {2}).node("Add", {"x", "y"}, {"z"}).output("z");
  ImportOptions options;
  options.bind["y"] = floats({2}, {1, 2});
  EXPECT_TRUE(import_status(model.bytes(), options).ok());
  options.bind["y"] = floats({1}, {1});
  expect_error(import_status(model.bytes(), options), Code::kInvalid,
               "input 'y' is bound to a value of f32 [1], expected f32 [2]");
  options.bind["y"] = ints({1, 2});
  expect_error(import_status(model.bytes(), options), Code::kInvalid, "expected f32 [2]");
  options.bind = {{"w", floats({2}, {1, 2})}};
  expect_error(import_status(model.bytes(), options), Code::kInvalid,
               "a value is bound to 'w', which is no input");
}

// A model of one input of the type and shape, to which a number is bound.
Result<Graph> with_bound(DType dtype, const Shape& shape, const Tensor& number) {
  TestModel model;
  model.input("n", shape, dtype).node("Identity", {"n"}, {"y"}).output("y");
  ImportOptions options;
  options.bind["n"] = number;
  const std::string bytes = model.bytes();
  return import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "", options);
}

Tensor number_of(DType dtype, double x) {
  Tensor number(dtype, {});
  number.set(0, x);
  return number;
}

TEST(import_onnx, a_bound_number_stays_what_it_is) {
  Tensor large(DType::kI64, {});
  large.as<int64_t>()[0] = (int64_t{1} << 53) + 1;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 1}}) {
    const auto graph = with_bound(DType::kI64, shape, large);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    const Value& y = graph->value(graph->outputs[0]);
    ASSERT_TRUE(y.constant);
    EXPECT_EQ(y.shape, shape);
    EXPECT_EQ(y.constant->as<int64_t>()[0], large.as<int64_t>()[0]);
  }
  EXPECT_TRUE(with_bound(DType::kF32, {1}, number_of(DType::kF64, 0.1)).ok());
  EXPECT_TRUE(with_bound(DType::kF32, {1}, number_of(DType::kF64, INFINITY)).ok());
  expect_error(with_bound(DType::kF32, {1}, number_of(DType::kF64, 1e300)).status(), Code::kInvalid,
               "bound to a value of f64 [] (1e+300), expected f32 [1]");
  expect_error(with_bound(DType::kU64, {}, large).status(), Code::kInvalid,
               "bound to a value of i64 [] (9007199254740993), expected u64 []");
  expect_error(with_bound(DType::kI64, {}, number_of(DType::kF64, 1e18)).status(), Code::kInvalid,
               "(1e+18), expected i64 []");
  constexpr int64_t kHuge = int64_t{1} << 40;
  expect_error(with_bound(DType::kF32, {kHuge, kHuge}, number_of(DType::kF64, 1)).status(),
               Code::kInvalid, "bound to a value of f64 [] (1)");
}

TEST(import_onnx, rejects_cycles_and_loose_ends) {
  expect_error(TestModel()
                   .input("x", {1})
                   .node("Add", {"x", "b"}, {"a"})
                   .node("Relu", {"a"}, {"b"})
                   .output("b")
                   .import()
                   .status(),
               Code::kInvalid, "cycle");
  expect_error(
      TestModel().input("x", {1}).node("Add", {"x", "q"}, {"y"}).output("y").import().status(),
      Code::kInvalid, "node 'node_y' (Add) reads 'q', which nothing defines");
  expect_error(TestModel().input("x", {1}).node("Relu", {"x"}, {"y"}).output("z").import().status(),
               Code::kInvalid, "output 'z'");
  expect_error(TestModel().input("x", {1}).node("Relu", {"x"}, {"y"}).import().status(),
               Code::kInvalid, "no outputs");
}

TEST(import_onnx, rejects_duplicate_names) {
  expect_error(TestModel()
                   .input("x", {1})
                   .node("Relu", {"x"}, {"y"})
                   .node("Tanh", {"x"}, {"y"})
                   .output("y")
                   .import()
                   .status(),
               Code::kInvalid, "'y': another value has this name");
  expect_error(TestModel()
                   .input("x", {1})
                   .input("x", {1})
                   .node("Relu", {"x"}, {"y"})
                   .output("y")
                   .import()
                   .status(),
               Code::kInvalid, "'x'");
}

TEST(import_onnx, names_the_node_whose_operands_do_not_fit) {
  Rng rng(2);
  TestModel model;
  model.input("x", {1, 3, 8, 8})
      .constant("w", random_tensor({4, 5, 3, 3}, rng))
      .node("Conv", {"x", "w"}, {"y"})
      .output("y");
  expect_error(model.import().status(), Code::kInvalid,
               "node 'node_y' (Conv): 3 channels, 1 groups");
  TestModel attribute;
  attribute.input("x", {1}).node("Relu", {"x"}, {"y"}, {{"slope", 1.0f}}).output("y");
  expect_error(attribute.import().status(), Code::kInvalid, "unknown attribute 'slope'");
  TestModel type;
  type.input("x", {1, 2, 4, 4})
      .node("MaxPool", {"x"}, {"y"}, {{"kernel_shape", int64_t{2}}})
      .output("y");
  expect_error(type.import().status(), Code::kInvalid,
               "attribute 'kernel_shape' has type i, expected is");
}

TEST(import_onnx, reads_external_data) {
  const Folder folder;
  const std::vector<float> values = {7, 8, 1, 2, 3, 4};
  folder.write("inner/weights.bin", std::string(reinterpret_cast<const char*>(values.data()), 24));
  TestModel model;
  model.input("x", {2, 2})
      .external("w", {2, 2}, "inner/weights.bin", 8, 16)
      .node("MatMul", {"x", "w"}, {"y"})
      .output("y");
  const auto graph = import_onnx(folder.write("m.onnx", model.bytes()));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Value& w = graph->value(graph->nodes[0].inputs[1]);
  EXPECT_EQ(relative_error(*w.constant, floats({2, 2}, {1, 2, 3, 4})), 0);
}

TEST(import_onnx, rejects_bad_external_data) {
  const Folder folder;
  folder.write("weights.bin", std::string(16, 'x'));
  const auto status = [&](const std::string& location, int64_t offset, int64_t length) {
    TestModel model;
    model.input("x", {2, 2})
        .external("w", {2, 2}, location, offset, length)
        .node("MatMul", {"x", "w"}, {"y"})
        .output("y");
    return import_onnx(folder.write("m.onnx", model.bytes())).status();
  };
  EXPECT_TRUE(status("weights.bin", 0, 16).ok());
  expect_error(status("missing.bin", -1, -1), Code::kNotFound, "initializer 'w'");
  expect_error(status("missing.bin", -1, -1), Code::kNotFound, "missing.bin");
  expect_error(status("weights.bin", 4, 16), Code::kInvalid, "truncated");
  expect_error(status("weights.bin", 0, 12), Code::kInvalid, "12 bytes");
  expect_error(status("weights.bin", INT64_MAX, 16), Code::kInvalid, "truncated");
  expect_error(status("../weights.bin", 0, 16), Code::kInvalid, "inside the model's folder");
  expect_error(status("inner/../../x.bin", 0, 16), Code::kInvalid, "inside the model's folder");
  expect_error(status("/etc/passwd", 0, 16), Code::kInvalid, "inside the model's folder");
  expect_error(status("", 0, 16), Code::kInvalid, "inside the model's folder");
  expect_error(status("inner", 0, 16), Code::kNotFound, "it is a directory, expected a file");
}

TEST(import_onnx, a_link_out_of_the_folder_is_followed_if_that_is_wanted) {
  const Folder folder;
  const std::vector<float> values = {1, 2, 3, 4};
  const std::filesystem::path base =
      std::filesystem::path(folder.write("marker", "")).parent_path();
  std::filesystem::create_directories(base / "blobs");
  std::filesystem::create_directories(base / "snapshot");
  folder.write("blobs/bbbb", std::string(reinterpret_cast<const char*>(values.data()), 16));
  TestModel model;
  model.input("x", {2, 2})
      .external("w", {2, 2}, "weights.bin", 0, 16)
      .node("MatMul", {"x", "w"}, {"y"})
      .output("y");
  const std::string path = folder.write("snapshot/m.onnx", model.bytes());
  const std::filesystem::path link = std::filesystem::path(path).parent_path() / "weights.bin";
  std::filesystem::create_symlink("../blobs/bbbb", link);
  expect_error(import_onnx(path).status(), Code::kInvalid, "--allow-linked-data");
  std::set<std::string> files;
  const auto graph = import_onnx(path, {.linked_data = true, .files = &files});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(files, (std::set<std::string>{path, link.string()}));
}

TEST(import_onnx, weights_without_data_are_plain_inputs) {
  TestModel model;
  model.input("x", {1, 3, 4, 4})
      .input("w", {2, 3, 1, 1})
      .node("Conv", {"x", "w"}, {"y"})
      .output("y");
  Graph graph = model.graph();
  EXPECT_EQ(graph.inputs.size(), 2u);
  Rng rng(3);
  const std::vector<Tensor> inputs = {random_tensor({1, 3, 4, 4}, rng),
                                      random_tensor({2, 3, 1, 1}, rng)};
  EXPECT_LT(relative_error(run_optimized(graph, inputs)[0], run_plainly(graph, inputs)[0]), 1e-6);
}

TEST(import_onnx, survives_mutated_files) {
  const std::string original = small_network().bytes();
  int accepted = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    std::string bytes = original;
    const int64_t edits = rng.between(1, 6);
    for (int64_t e = 0; e < edits; ++e) {
      // Most of the file is weights: aim at the rest.
      const auto size = static_cast<int64_t>(bytes.size());
      const int64_t at =
          rng.chance(0.5) ? rng.below(std::min<int64_t>(size, 400)) : rng.below(size);
      const auto position = static_cast<size_t>(at);
      switch (rng.below(4)) {
        case 0: bytes[position] = static_cast<char>(rng.below(256)); break;
        case 1: bytes[position] = static_cast<char>(bytes[position] ^ (1 << rng.below(8))); break;
        case 2: bytes.erase(position, static_cast<size_t>(rng.between(1, 8))); break;
        default:
          bytes.insert(position, bytes.substr(static_cast<size_t>(rng.below(size)), 8));
          break;
      }
      if (bytes.empty()) break;
    }
    SCOPED_TRACE(seed);
    auto graph = import_onnx_bytes(bytes.data(), bytes.size(), "m.onnx", "");
    if (!graph.ok()) {
      EXPECT_NE(graph.status().code(), Code::kInternal) << graph.status().message();
      continue;
    }
    ++accepted;
    // A model that is accepted can be compiled, or the error says why not.
    if (const Status status = optimize(*graph); !status.ok()) {
      EXPECT_NE(status.code(), Code::kInternal) << status.message();
      continue;
    }
    const auto tasks = extract_tasks(*graph);
    EXPECT_TRUE(tasks.ok() || tasks.status().code() == Code::kUnsupported)
        << tasks.status().message();
  }
  EXPECT_GT(accepted, 50);
}

// The model is not valid at the ranges of the rule, and its weights are in another file.
TEST(import_onnx, a_file_is_read_once_for_all_ranges_that_are_tried) {
  const Folder folder;
  TestModel model;
  model.open_input("x", {"batch", "4"}).external("w", {4, 16}, "weights.bin", 0, 256);
  Tensor k(DType::kI64, {1});
  k.set(0, 3);
  model.constant("k", k).node("MatMul", {"x", "w"}, {"p"});
  model.node("TopK", {"p", "k"}, {"y"}, {{"axis", int64_t{0}}}).output("y");
  const std::string weights = folder.write("weights.bin", std::string(256, 'w'));
  const std::string path = folder.write("m.onnx", model.bytes());
  const Openings of_model(path), of_weights(weights);
  std::string taken;
  std::set<std::string> files;
  const auto graph = import_onnx(path, {.open_ranges = true, .taken = &taken, .files = &files});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_NE(taken.find("batch is 3..8"), std::string::npos) << taken;
  EXPECT_EQ(of_model.count(), 1);
  EXPECT_EQ(of_weights.count(), 1);
  EXPECT_EQ(files, (std::set{path, weights}));
}

}  // namespace
}  // namespace hone::graph
