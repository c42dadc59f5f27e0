#include "hone/backend/cpu/machine_code.h"

#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>

#include "hone/backend/cpu/emit_object.h"

namespace hone::backend::cpu {
namespace {

Status object_error(llvm::Error failure) {
  return error(Code::kInternal, "generated object: {}", llvm::toString(std::move(failure)));
}

// Returns the text on one line with single spaces.
std::string tidy(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n';
    if (!space) {
      result += c;
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
  }
  while (result.ends_with(' ')) result.pop_back();
  return result;
}

}  // namespace

Result<std::unique_ptr<Disassembler>> Disassembler::create(const target::Cpu& target) {
  initialize_targets();
  const llvm::Triple triple(target.triple);
  std::string message;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!backend) return error(Code::kUnsupported, "no disassembler for target {}", target.triple);
  auto self = std::unique_ptr<Disassembler>(new Disassembler);
  self->registers_.reset(backend->createMCRegInfo(triple));
  self->assembler_.reset(
      backend->createMCAsmInfo(*self->registers_, triple, llvm::MCTargetOptions()));
  self->subtarget_.reset(
      backend->createMCSubtargetInfo(triple, target.model, feature_string(target)));
  self->instructions_.reset(backend->createMCInstrInfo());
  self->analysis_.reset(backend->createMCInstrAnalysis(self->instructions_.get()));
  self->context_ = std::make_unique<llvm::MCContext>(
      triple, self->assembler_.get(), self->registers_.get(), self->subtarget_.get());
  self->decoder_.reset(backend->createMCDisassembler(*self->subtarget_, *self->context_));
  self->printer_.reset(backend->createMCInstPrinter(triple, 0, *self->assembler_,
                                                    *self->instructions_, *self->registers_));
  if (!self->decoder_ || !self->printer_ || !self->analysis_)
    return error(Code::kUnsupported, "no disassembler for target {}", target.triple);
  return self;
}

Instruction Disassembler::describe(llvm::MCInst inst, uint64_t address, uint64_t bytes) const {
  Instruction found;
  found.address = address;
  found.bytes = bytes;
  llvm::raw_string_ostream stream(found.text);
  printer_->printInst(&inst, address, "", *subtarget_, stream);
  found.text = tidy(found.text);
  const llvm::MCInstrDesc& description = instructions_->get(inst.getOpcode());
  found.loads = description.mayLoad();
  found.stores = description.mayStore();
  if (uint64_t target = 0; description.isBranch() && !description.isIndirectBranch() &&
                           analysis_->evaluateBranch(inst, address, bytes, target)) {
    found.jumps_to = target;
  }
  for (const llvm::MCOperand& operand : inst) {
    CodeOperand& known = found.operands.emplace_back();
    if (operand.isImm()) known.number = operand.getImm();
    if (!operand.isReg() || !operand.getReg().isValid()) continue;
    known.reg = registers_->getName(operand.getReg());
    found.registers.emplace_back(known.reg);
  }
  for (size_t i = 0; i < found.operands.size() && i < description.operands().size(); ++i)
    found.operands[i].is_address =
        description.operands()[i].OperandType == llvm::MCOI::OPERAND_MEMORY;
  found.opcode = instructions_->getName(inst.getOpcode());
  found.num_results = description.getNumDefs();
  for (const llvm::MCPhysReg reg : description.implicit_uses())
    found.implicit_uses.emplace_back(registers_->getName(reg));
  for (unsigned i = 0; i < description.getNumDefs() && i < found.operands.size(); ++i) {
    if (!found.operands[i].reg.empty()) found.defines.push_back(found.operands[i].reg);
  }
  for (const llvm::MCPhysReg reg : description.implicit_defs())
    found.defines.emplace_back(registers_->getName(reg));
  found.flow = description.isReturn()              ? Flow::kReturn
               : description.isCall()              ? Flow::kCall
               : description.isIndirectBranch()    ? Flow::kIndirect
               : !description.isBranch()           ? Flow::kNext
               : description.isConditionalBranch() ? Flow::kBranch
                                                   : Flow::kJump;
  found.inst = std::move(inst);
  return found;
}

Result<std::vector<Instruction>> Disassembler::decode(llvm::StringRef bytes,
                                                      uint64_t address) const {
  std::vector<Instruction> body;
  const llvm::ArrayRef<uint8_t> code(bytes.bytes_begin(), bytes.size());
  for (uint64_t at = 0; at < code.size();) {
    llvm::MCInst inst;
    uint64_t size = 0;
    if (decoder_->getInstruction(inst, size, code.slice(at), address + at, llvm::nulls()) ==
        llvm::MCDisassembler::Fail) {
      return error(Code::kInternal, "generated object: no instruction at byte {}", address + at);
    }
    body.push_back(describe(std::move(inst), address + at, size));
    at += size;
  }
  return body;
}

Result<std::vector<Function>> Disassembler::functions(const std::string& object) const {
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "kernel"));
  if (!file) return object_error(file.takeError());
  struct Place {
    uint64_t section, address, bytes;
    std::string name;
    llvm::StringRef code;
  };
  std::vector<Place> places;
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    auto type = symbol.getType();
    auto name = symbol.getName();
    auto section = symbol.getSection();
    if (!type) return object_error(type.takeError());
    if (!name) return object_error(name.takeError());
    if (!section) return object_error(section.takeError());
    if (*type != llvm::object::SymbolRef::ST_Function || *section == (*file)->section_end())
      continue;
    auto contents = (*section)->getContents();
    auto address = symbol.getAddress();
    if (!contents) return object_error(contents.takeError());
    if (!address) return object_error(address.takeError());
    const uint64_t bytes = llvm::object::ELFSymbolRef(symbol).getSize();
    places.push_back({(*section)->getIndex(), *address, bytes, name->str(),
                      contents->substr(*address - (*section)->getAddress(), bytes)});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::pair(a.section, a.address) < std::pair(b.section, b.address);
  });
  std::vector<Function> functions;
  for (const Place& place : places) {
    HONE_ASSIGN_OR_RETURN(std::vector<Instruction> body, decode(place.code, place.address));
    functions.push_back({place.name, std::move(body)});
  }
  return functions;
}

Result<const Function*> find_function(const std::vector<Function>& functions,
                                      const std::string& name) {
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [&](const Function& f) { return f.name == name; });
  if (found == functions.end())
    return error(Code::kInternal, "compiled code has no function {}", name);
  return &*found;
}

}  // namespace hone::backend::cpu
