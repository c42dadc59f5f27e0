#include "hone/tensor/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "hone/base/file.h"
#include "hone/base/rng.h"
#include "hone/tensor/zip.h"

namespace hone {
namespace {

constexpr DType kAll[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kBool,
                          DType::kU8,  DType::kI8,  DType::kU16, DType::kI16,  DType::kU32,
                          DType::kI32, DType::kU64, DType::kI64};

Tensor random_tensor(DType dtype, const Shape& shape, Rng& rng) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, rng.normal() * 100);
  return tensor;
}

void expect_same(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())), 0);
}

// A version 1 file with this header and so many bytes 0, 1, 2, ...
std::string npy(std::string header, size_t data_bytes) {
  header += '\n';
  std::string bytes = std::string("\x93NUMPY\x01", 7) + '\0';
  bytes += {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  bytes += header;
  for (size_t i = 0; i < data_bytes; ++i) bytes += static_cast<char>(i);
  return bytes;
}

TEST(npy, round_trip_of_every_type_and_rank) {
  Rng rng(1);
  for (const DType dtype : kAll) {
    for (const Shape& shape :
         {Shape{}, Shape{1}, Shape{7}, Shape{2, 3, 5}, Shape{0}, Shape{3, 0, 2}}) {
      const Tensor tensor = random_tensor(dtype, shape, rng);
      const std::string bytes = format_npy(tensor);
      EXPECT_EQ((bytes.size() - static_cast<size_t>(tensor.bytes())) % 64, 0u);
      const Result<Tensor> back = parse_npy(bytes);
      ASSERT_TRUE(back.ok()) << back.status().message();
      expect_same(*back, tensor);
    }
  }
}

TEST(npy, header_is_what_numpy_writes) {
  const std::string bytes = format_npy(Tensor(DType::kF32, {3}));
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(bytes.substr(10, 60), "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }   ");
  EXPECT_EQ(bytes[127], '\n');
  EXPECT_NE(format_npy(Tensor(DType::kBool, {})).find("'|b1'"), std::string::npos);
  EXPECT_NE(
      format_npy(Tensor(DType::kF16, {})).find("'<f2', 'fortran_order': False, 'shape': (), }"),
      std::string::npos);
}

TEST(npy, fortran_order_is_transposed) {
  const auto tensor =
      parse_npy(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2)}", 12));
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->shape(), (Shape{2, 3, 2}));
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      for (int64_t k = 0; k < 2; ++k) EXPECT_EQ(tensor->at((i * 3 + j) * 2 + k), i + 2 * j + 6 * k);
    }
  }
  EXPECT_TRUE(parse_npy(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (0, 3)}", 0)).ok());
}

TEST(npy, later_versions_have_a_wider_length) {
  std::string bytes = npy("{\"shape\": (2,), 'fortran_order': False, 'descr': '<i2'}", 4);
  for (const char version : {'\2', '\3'}) {
    std::string later = bytes;
    later[6] = version;
    later.insert(10, 2, '\0');
    const auto tensor = parse_npy(later);
    ASSERT_TRUE(tensor.ok()) << tensor.status().message();
    EXPECT_EQ(tensor->at(0), 0x0100);
    EXPECT_EQ(tensor->at(1), 0x0302);
  }
}

TEST(npy, foreign_files_are_errors) {
  const struct {
    std::string bytes;
    const char* message;
  } cases[] = {
      {"", "not a .npy file"},
      {"PK\3\4", "not a .npy file"},
      {std::string("\x93NUMPY\x07\0\0\0", 10), "unknown version"},
      {std::string("\x93NUMPY\x01\0\xff\xff", 10), "cut off"},
      {npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", 4), "big-endian"},
      {npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", 8), "type '|O'"},
      {npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", 8), "type '<c8'"},
      {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4),
       "not understood"},
      {npy("{'descr': '<f4', 'fortran_order': False}", 4), "not understood"},
      {npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", 4), "not understood"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", 4), "not understood"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4), "not understood"},
      {npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4),
       "not understood"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 4), "not understood"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4), "not understood"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 7),
       "found 7 bytes of data, expected 8"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 9),
       "found 9 bytes of data, expected 8"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0),
       "too many elements"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 0)}", 0),
       "too many elements"},
  };
  for (const auto& test : cases) {
    const Result<Tensor> tensor = parse_npy(test.bytes);
    ASSERT_FALSE(tensor.ok()) << test.message;
    EXPECT_NE(tensor.status().message().find(test.message), std::string::npos)
        << tensor.status().message();
  }
}

TEST(npz, round_trip_stored_and_deflated) {
  Rng rng(2);
  for (const bool compress : {false, true}) {
    std::vector<NamedTensor> tensors;
    for (const DType dtype : kAll)
      tensors.push_back({std::string(dtype_name(dtype)), random_tensor(dtype, {4, 9}, rng)});
    tensors.push_back({"zeros", Tensor(DType::kF32, {1000})});
    tensors.push_back({"empty", Tensor(DType::kF32, {0})});
    const Result<std::string> bytes = format_npz(tensors, compress);
    ASSERT_TRUE(bytes.ok());
    EXPECT_EQ(bytes->size() < 4000 + 1500, compress) << bytes->size();
    const auto back = parse_npz(*bytes);
    ASSERT_TRUE(back.ok()) << back.status().message();
    ASSERT_EQ(back->size(), tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ((*back)[i].name, tensors[i].name);
      expect_same((*back)[i].tensor, tensors[i].tensor);
    }
  }
  EXPECT_TRUE(parse_npz(*format_npz({}))->empty());
}

TEST(npz, what_does_not_belong_is_an_error) {
  const std::string array = format_npy(Tensor(DType::kF32, {2}));
  const auto message = [](const std::vector<ZipEntry>& entries) {
    return parse_npz(*format_zip(entries, false)).status().message();
  };
  EXPECT_EQ(message({{"readme.txt", "x"}}), "entry 'readme.txt' is not a .npy array");
  EXPECT_EQ(message({{"a.npy", array}, {"a.npy", array}}), "array 'a' is there twice");
  EXPECT_EQ(message({{"a.npy", "x"}}),
            "array 'a': not a .npy file: it does not start with the NumPy signature");
  EXPECT_EQ(parse_npz(array).status().message(), "not a whole ZIP archive: no end record");
}

// Whatever is done to a file, reading ends in a tensor or in a message; sanitizers see the rest.
TEST(npz, corrupted_bytes_never_crash) {
  Rng rng(3);
  const std::vector<NamedTensor> tensors = {{"a", random_tensor(DType::kF32, {3, 4}, rng)},
                                            {"b", Tensor(DType::kI64, {50})}};
  int errors = 0;
  constexpr int kRounds = 20'000;
  for (int round = 0; round < kRounds; ++round) {
    const bool zip = rng.chance(0.6);
    std::string bytes = zip ? *format_npz(tensors, rng.chance(0.5)) : format_npy(tensors[0].tensor);
    if (rng.chance(0.3))
      bytes.resize(static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size()))));
    for (int64_t edits = rng.between(1, 4); edits > 0 && !bytes.empty(); --edits) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size())));
      bytes[at] = static_cast<char>(rng.chance(0.3) ? 0xff : rng.between(0, 255));
    }
    const Status status = zip ? parse_npz(bytes).status() : parse_npy(bytes).status();
    EXPECT_EQ(status.ok(), status.message().empty()) << "round " << round;
    errors += !status.ok();
  }
  EXPECT_GT(errors, kRounds / 2);
}

TEST(npz, no_changed_data_byte_is_missed) {
  const std::vector<NamedTensor> tensors = {{"a", Tensor(DType::kF32, {100})}};
  for (const bool compress : {false, true}) {
    const std::string good = *format_npz(tensors, compress);
    const size_t start = good.find("\x93NUMPY") == std::string::npos ? 36 : good.find("\x93NUMPY");
    for (size_t at = start; at < start + 60; ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 0x10);
      const auto back = parse_npz(bad);
      if (compress &&
          back.ok()) {  // deflate has bits that mean nothing; then the data is still the same
        expect_same((*back)[0].tensor, tensors[0].tensor);
        continue;
      }
      EXPECT_FALSE(back.ok()) << at;
    }
  }
}

TEST(npy, files) {
  const Result<TempDir> dir = TempDir::create("hone_npy_test");
  ASSERT_TRUE(dir.ok());
  Rng rng(4);
  const Tensor tensor = random_tensor(DType::kF32, {2, 2}, rng);
  ASSERT_TRUE(write_npy(dir->file("a.npy"), tensor).ok());
  expect_same(*read_npy(dir->file("a.npy")), tensor);
  ASSERT_TRUE(write_npz(dir->file("a.npz"), std::vector<NamedTensor>{{"x", tensor}}).ok());
  const auto back = read_npz(dir->file("a.npz"));
  ASSERT_TRUE(back.ok());
  expect_same(back->at(0).tensor, tensor);
  EXPECT_EQ(read_npy(dir->file("a.npz")).status().message(),
            fmt::format("'{}': not a .npy file: it does not start with the NumPy signature",
                        dir->file("a.npz")));
  EXPECT_EQ(read_npy(dir->file("no.npy")).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace hone
