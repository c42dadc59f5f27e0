#include "hone/artifact/elf_object.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "hone/artifact/artifact_testing.h"

namespace hone::artifact {
namespace {

using testing::Folder;

template <typename T>
T read_struct(const std::string& bytes, size_t place) {
  T value = {};
  EXPECT_LE(place + sizeof value, bytes.size());
  if (place + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

TEST(elf_object, lays_out_sections_and_relocations) {
  const Folder folder;
  const std::string text = "abc";
  const std::string more = "defg";
  const std::string slots(16, '\0');
  ElfObject object;
  object.machine = Machine::kAArch64;
  object.sections.push_back(
      {".rodata", ElfSection::kReadOnly, 256, {{text.data(), 3}, {more.data(), 4}}, {}});
  object.sections.push_back(
      {".data.rel.ro", ElfSection::kRelocatedData, 8, {{slots.data(), 16}}, {}});
  object.sections[1].relocations = {{ElfRelocation::kPointer, 8, 1, 5}};
  object.symbols = {{"here", 0, 2, 5, false, true}, {"elsewhere"}};
  ASSERT_TRUE(write_elf_object(object, folder.file("a.o")).ok());
  const std::string bytes = testing::read_file(folder.file("a.o"));

  const Result<Machine> machine = object_machine(bytes);
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(*machine, Machine::kAArch64);
  const Elf64_Ehdr header = read_struct<Elf64_Ehdr>(bytes, 0);
  const auto section = [&](uint64_t i) {
    return read_struct<Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  EXPECT_EQ(section(1).sh_offset % 256, 0U);
  EXPECT_EQ(bytes.substr(section(1).sh_offset, section(1).sh_size), "abcdefg");
  EXPECT_EQ(section(3).sh_type, uint32_t{SHT_SYMTAB});
  EXPECT_EQ(section(4).sh_type, uint32_t{SHT_RELA});
  EXPECT_EQ(section(4).sh_info, 2U);
  const Elf64_Sym symbol = read_struct<Elf64_Sym>(bytes, section(3).sh_offset + sizeof(Elf64_Sym));
  EXPECT_EQ(symbol.st_shndx, 1);
  EXPECT_EQ(symbol.st_value, 2U);
  EXPECT_EQ(symbol.st_other, STV_HIDDEN);
  const Elf64_Rela relocation = read_struct<Elf64_Rela>(bytes, section(4).sh_offset);
  EXPECT_EQ(relocation.r_offset, 8U);
  EXPECT_EQ(ELF64_R_SYM(relocation.r_info), 2U);
  EXPECT_EQ(ELF64_R_TYPE(relocation.r_info), uint32_t{R_AARCH64_ABS64});
  EXPECT_EQ(relocation.r_addend, 5);
}

TEST(elf_object, reports_a_file_that_cannot_be_written) {
  const Status status = write_elf_object({}, "/no/such/folder/a.o");
  EXPECT_EQ(status.message(), "cannot write /no/such/folder/a.o: no such file or directory");
}

TEST(elf_object, of_other_kinds_is_refused) {
  EXPECT_FALSE(object_machine("").ok());
  EXPECT_FALSE(object_machine(std::string(200, 'x')).ok());
  // A program is no relocatable object.
  EXPECT_FALSE(object_machine(testing::read_file("/proc/self/exe")).ok());
}

}  // namespace
}  // namespace hone::artifact
