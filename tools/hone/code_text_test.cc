#include "code_text.h"

#include <gtest/gtest.h>

namespace hone::tool {
namespace {

TEST(code_text, names_what_is_there) {
  CodeFigures code{.registers = 96, .shared_bytes = 16400, .instructions = 1200};
  const std::string head =
      "96 registers a thread; 16.4k bytes of shared memory a block; 1.20k instructions: ";
  EXPECT_EQ(describe(code), head + "0 multiply-adds");
  code.multiply_adds = 512, code.global_stores = 3, code.local_accesses = 2, code.async_copies = 8;
  EXPECT_EQ(describe(code), head +
                                "512 multiply-adds, 3 stores of global memory, 2 accesses of local "
                                "memory, 8 asynchronous copies");
  code.global_loads = 4, code.shared_loads = 5, code.shared_stores = 6;
  EXPECT_EQ(describe(code), head +
                                "512 multiply-adds, 4 loads of global memory, 3 stores of global "
                                "memory, 11 accesses of shared memory, 2 accesses of local memory, "
                                "8 asynchronous copies");
}

}  // namespace
}  // namespace hone::tool
