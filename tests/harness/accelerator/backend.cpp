// A genuine torch device in host memory: two indexes, memory of its own, autograd on a native thread for each device.
//
// Genuine, that is torch's own code for any device that is not the CPU: device types and indexes, refusal of numpy(), copies
// between devices, pinned memory, autograd's threads, and the device errors of TensorIterator, indexing, autograd and layers.
// Arranged, since torch generates it only for backends in its own tree: the "same device" check before the other operators, and the
// words of a generator of another device. Both are marked below.
// Computed: every operator but those registered at the end runs the CPU's kernel on the same bytes.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/extension.h>

#include <array>
#include <atomic>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

namespace {

constexpr c10::DeviceType kAccel = c10::DeviceType::PrivateUse1;
constexpr c10::DispatchKey kKey = c10::DispatchKey::PrivateUse1;
constexpr int kDevices = 2;

// --- Memory --------------------------------------------------------------------------------------------------------------------

std::array<std::atomic<int64_t>, kDevices> allocated{};
thread_local c10::DeviceIndex current = 0;

struct Block {
  void* data;
  size_t bytes;
  c10::DeviceIndex index;
};

void release(void* context) {
  auto* block = static_cast<Block*>(context);
  allocated[block->index] -= static_cast<int64_t>(block->bytes);
  std::free(block->data);
  delete block;
}

struct AccelAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes ? std::aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr;
    allocated[current] += static_cast<int64_t>(bytes);
    return {data, new Block{data, bytes, current}, &release, c10::Device(kAccel, current)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t count) const override { std::memcpy(to, from, count); }
};

AccelAllocator accel_allocator;
REGISTER_ALLOCATOR(kAccel, &accel_allocator);

// Pinned host memory: ordinary memory whose addresses are remembered.
std::mutex pinned_lock;
std::unordered_set<const void*> pinned;

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* data = std::aligned_alloc(64, (bytes + 64) / 64 * 64);
    std::lock_guard<std::mutex> guard(pinned_lock);
    pinned.insert(data);
    return {data, data, &unpin, c10::Device(c10::kCPU)};
  }
  static void unpin(void* data) {
    {
      std::lock_guard<std::mutex> guard(pinned_lock);
      pinned.erase(data);
    }
    std::free(data);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &unpin; }
  void copy_data(void* to, const void* from, std::size_t count) const override { std::memcpy(to, from, count); }
};

PinnedAllocator pinned_allocator;

// --- The current device --------------------------------------------------------------------------------------------------------

struct AccelGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kAccel; }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device before = getDevice();
    current = device.index();
    return before;
  }
  c10::Device getDevice() const override { return {kAccel, current}; }
  void setDevice(c10::Device device) const override { current = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = device.index(); }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return c10::Stream(c10::Stream::DEFAULT, stream.device()); }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, AccelGuard);

// --- Random numbers ------------------------------------------------------------------------------------------------------------

struct AccelGenerator final : c10::GeneratorImpl {
  explicit AccelGenerator(c10::DeviceIndex index)
      : c10::GeneratorImpl(c10::Device(kAccel, index), c10::DispatchKeySet(kKey)), cpu(at::detail::createCPUGenerator()) {}
  void set_current_seed(uint64_t seed) override { cpu.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { cpu.set_offset(offset); }
  uint64_t get_offset() const override { return cpu.get_offset(); }
  uint64_t current_seed() const override { return cpu.current_seed(); }
  uint64_t seed() override { return cpu.seed(); }
  void set_state(const c10::TensorImpl& state) override { cpu.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return cpu.unsafeGetGeneratorImpl()->get_state(); }
  AccelGenerator* clone_impl() const override {
    auto* copy = new AccelGenerator(device().index());
    copy->cpu = cpu.clone();
    return copy;
  }
  at::Generator cpu;  // mutable state behind a handle
};

at::Generator new_generator(c10::DeviceIndex index) {
  return at::make_generator<AccelGenerator>(index < 0 ? current : index);
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  static std::array<at::Generator, kDevices> made{new_generator(0), new_generator(1)};
  return made.at(index < 0 ? current : index);
}

struct AccelHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  void setCurrentDevice(c10::DeviceIndex index) const override { current = index; }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override { return std::exchange(current, index); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? current : std::exchange(current, index);
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }
  at::Device getDeviceFromPtr(void*) const override { return {kAccel, current}; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator; }
  bool isPinnedPtr(const void* data) const override {
    std::lock_guard<std::mutex> guard(pinned_lock);
    return pinned.count(data) > 0;
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto* impl = storage.unsafeGetStorageImpl();
    c10::DeviceGuard on(storage.device());
    c10::DataPtr data = accel_allocator.allocate(bytes);
    if (bytes && impl->nbytes()) std::memcpy(data.get(), impl->data(), std::min(bytes, impl->nbytes()));
    impl->set_data_ptr_noswap(std::move(data));
    impl->set_nbytes(bytes);
  }
};

AccelHooks accel_hooks;

// --- Every other operator: the CPU's kernel on the same bytes --------------------------------------------------------------------

// Operators that torch generates no device check for; read from its native_functions.yaml by __init__.py.
std::unordered_set<std::string> unchecked;

void keep(void* storage) {
  c10::raw::intrusive_ptr::decref(static_cast<c10::StorageImpl*>(storage));
}

// The CPU's face of a tensor: the same bytes, sizes and strides under the CPU's key.
class Faces {
 public:
  at::Tensor of(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() != kAccel) return tensor;
    auto* impl = tensor.unsafeGetTensorImpl();
    if (auto known = by_tensor_.find(impl); known != by_tensor_.end()) return faces_[known->second].cpu;
    at::Tensor cpu = at::detail::make_tensor<c10::TensorImpl>(
        storage_of(tensor), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
    auto* face = cpu.unsafeGetTensorImpl();
    face->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    if (tensor.is_conj()) face->_set_conj(true);
    if (tensor.is_neg()) face->_set_neg(true);
    by_tensor_[impl] = faces_.size();
    faces_.push_back({tensor, cpu});
    return cpu;
  }

  // What a kernel returned, as a tensor of the device.
  at::Tensor back(const at::Tensor& cpu, c10::Device device) {
    if (!cpu.defined() || cpu.device().type() != c10::kCPU || cpu.is_sparse()) return cpu;
    for (const auto& face : faces_)
      if (face.cpu.is_same(cpu)) return face.accel;
    for (const auto& face : faces_)
      if (cpu.storage().is_alias_of(face.cpu.storage())) return view_of(face.accel, cpu);
    return copied(cpu, device);
  }

  // Arguments that the kernel wrote may have been resized or given another storage.
  void write_back() {
    for (const auto& face : faces_) {
      auto* to = face.accel.unsafeGetTensorImpl();
      if (face.cpu.storage().data() != face.accel.storage().data()) {
        c10::DeviceGuard on(face.accel.device());
        accel_hooks.resizePrivateUse1Bytes(face.accel.storage(), face.cpu.storage().nbytes());
        std::memcpy(face.accel.storage().mutable_data(), face.cpu.storage().data(), face.cpu.storage().nbytes());
      }
      if (face.cpu.sizes() != face.accel.sizes() || face.cpu.strides() != face.accel.strides())
        to->set_sizes_and_strides(face.cpu.sizes(), face.cpu.strides(), face.cpu.storage_offset());
    }
  }

 private:
  struct Face {
    at::Tensor accel, cpu;
  };

  // One storage of the CPU for each of the device, so that views of one memory stay views of one memory.
  c10::Storage storage_of(const at::Tensor& tensor) {
    auto* impl = tensor.storage().unsafeGetStorageImpl();
    if (auto known = storages_.find(impl); known != storages_.end()) return known->second;
    c10::raw::intrusive_ptr::incref(impl);
    c10::DataPtr data(impl->mutable_data(), impl, &keep, c10::Device(c10::kCPU));
    c10::Storage made(c10::Storage::use_byte_size_t(), impl->nbytes(), std::move(data), c10::GetCPUAllocator(), true);
    storages_.emplace(impl, made);
    return made;
  }

  static at::Tensor view_of(const at::Tensor& accel, const at::Tensor& cpu) {
    at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
        c10::TensorImpl::VIEW, c10::Storage(accel.storage()), c10::DispatchKeySet(kKey), cpu.dtype());
    made.unsafeGetTensorImpl()->set_sizes_and_strides(cpu.sizes(), cpu.strides(), cpu.storage_offset());
    if (cpu.is_conj()) made.unsafeGetTensorImpl()->_set_conj(true);
    if (cpu.is_neg()) made.unsafeGetTensorImpl()->_set_neg(true);
    return made;
  }

  static at::Tensor copied(const at::Tensor& cpu, c10::Device device) {
    c10::DeviceGuard on(device);
    auto storage = c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), cpu.storage().nbytes(), &accel_allocator, true);
    if (storage->nbytes()) std::memcpy(storage->mutable_data(), cpu.storage().data(), storage->nbytes());
    at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(std::move(storage)), c10::DispatchKeySet(kKey), cpu.dtype());
    made.unsafeGetTensorImpl()->set_sizes_and_strides(cpu.sizes(), cpu.strides(), cpu.storage_offset());
    return made;
  }

  std::vector<Face> faces_;
  std::unordered_map<c10::TensorImpl*, size_t> by_tensor_;
  std::unordered_map<c10::StorageImpl*, c10::Storage> storages_;
};

// Arranged: CUDA's kernel of masked_fill_ checks by itself, in these words.
void check_mask(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(self.device() == mask.device(), "expected self and mask to be on the same device, but got mask on ",
              mask.device(), " and self on ", self.device());
}

// Arranged: the check that torch generates for CUDA before each operator that does not check by itself.
void check_common_device(const c10::OperatorHandle& op, at::ArrayRef<c10::IValue> arguments) {
  const std::string name = toString(op.operator_name());
  if (name.rfind("aten::masked_fill", 0) == 0) return check_mask(arguments[0].toTensor(), arguments[1].toTensor());
  if (unchecked.count(name)) return;
  std::optional<c10::Device> common;
  const auto& schema = op.schema();
  for (size_t at = 0; at < arguments.size(); at++) {
    const auto& value = arguments[at];
    const std::string& argument = schema.arguments()[at].name();
    auto check = [&](const at::Tensor& tensor) {
      c10::impl::check_and_update_common_device(common, tensor, name.c_str(), argument.c_str());
    };
    if (value.isTensor()) check(value.toTensor());
    else if (value.isTensorList()) for (const at::Tensor& each : value.toTensorVector()) check(each);
    else if (value.isOptionalTensorList())
      for (const auto& each : value.toOptionalTensorVector()) if (each.has_value()) check(*each);
  }
}

// Arranged: torch's words for a generator of another device (at::check_generator).
at::Generator generator_for(const c10::IValue& value, c10::Device device) {
  if (value.isNone()) return static_cast<AccelGenerator*>(default_generator(device.index()).unsafeGetGeneratorImpl())->cpu;
  at::Generator given = value.toGenerator();
  TORCH_CHECK(given.device().type() == kAccel, "Expected a '", kAccel, "' device type for generator but found '",
              given.device().type(), "'");
  return static_cast<AccelGenerator*>(given.unsafeGetGeneratorImpl())->cpu;
}

std::optional<c10::Device> device_in(at::ArrayRef<c10::IValue> arguments) {
  for (const auto& value : arguments) {
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().device().type() == kAccel) return value.toTensor().device();
    if (value.isTensorList())
      for (const at::Tensor& each : value.toTensorVector())
        if (each.defined() && each.device().type() == kAccel) return each.device();
    if (value.isDevice() && value.toDevice().type() == kAccel)
      return c10::Device(kAccel, value.toDevice().has_index() ? value.toDevice().index() : current);
  }
  return std::nullopt;
}

c10::IValue to_cpu(const c10::IValue& value, const c10::Argument& argument, c10::Device device, Faces& faces) {
  if (value.isTensor()) return faces.of(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& each : value.toTensorVector()) list.push_back(faces.of(each));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& each : value.toOptionalTensorVector())
      list.push_back(each.has_value() ? std::optional<at::Tensor>(faces.of(*each)) : std::nullopt);
    return list;
  }
  if (value.isDevice()) return value.toDevice().type() == kAccel ? c10::IValue(c10::Device(c10::kCPU)) : value;
  if (argument.name() == "generator") return generator_for(value, device);
  if (argument.name() == "pin_memory") return c10::IValue();
  return value;
}

c10::IValue from_cpu(const c10::IValue& value, c10::Device device, Faces& faces) {
  if (value.isTensor()) return faces.back(value.toTensor(), device);
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& each : value.toTensorVector()) list.push_back(faces.back(each, device));
    return list;
  }
  return value;
}

void on_the_cpu(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const size_t given = schema.arguments().size();
  const auto arguments = torch::jit::last(*stack, given);
  check_common_device(op, arguments);
  const c10::Device device = device_in(arguments).value_or(c10::Device(kAccel, current));
  Faces faces;
  std::vector<c10::IValue> cpu;
  for (size_t at = 0; at < given; at++) cpu.push_back(to_cpu(arguments[at], schema.arguments()[at], device, faces));
  torch::jit::drop(*stack, given);
  for (auto& value : cpu) torch::jit::push(*stack, std::move(value));
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  faces.write_back();
  const size_t made = schema.returns().size();
  std::vector<c10::IValue> results;
  for (const auto& value : torch::jit::last(*stack, made)) results.push_back(from_cpu(value, device, faces));
  torch::jit::drop(*stack, made);
  for (auto& value : results) torch::jit::push(*stack, std::move(value));
}

// --- Operators of the device itself ------------------------------------------------------------------------------------------------

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  c10::DeviceGuard on(device.value_or(c10::Device(kAccel)));
  return at::detail::empty_generic_symint(
      size, &accel_allocator, c10::DispatchKeySet(kKey), c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  c10::DeviceGuard on(device.value_or(c10::Device(kAccel)));
  return at::detail::empty_strided_symint_generic(
      size, stride, &accel_allocator, c10::DispatchKeySet(kKey), c10::dtype_or_default(dtype));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  Faces faces;
  faces.of(to).copy_(faces.of(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar local_scalar_dense(const at::Tensor& tensor) {
  Faces faces;
  return faces.of(tensor).item();
}

const at::Tensor& resize(const at::Tensor& self, c10::SymIntArrayRef size, std::optional<at::MemoryFormat> format) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  auto* impl = self.unsafeGetTensorImpl();
  const size_t needed = at::detail::computeStorageNbytesContiguous(sizes, self.element_size(), self.storage_offset());
  if (needed > self.storage().nbytes()) accel_hooks.resizePrivateUse1Bytes(self.storage(), needed);
  impl->set_sizes_contiguous(sizes);
  if (format.has_value()) impl->empty_tensor_restride(*format);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  const int64_t length = static_cast<int64_t>(source.nbytes() / self.element_size());
  return at::native::set_storage_cpu_(self, std::move(source), 0, {length}, {});
}

at::Tensor& set_nothing(at::Tensor& self) {
  c10::DeviceGuard on(self.device());
  c10::Storage none(c10::Storage::use_byte_size_t(), 0, accel_allocator.allocate(0), &accel_allocator, true);
  return at::native::set_storage_cpu_(self, std::move(none), 0, {0}, {});
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  Faces faces;
  const auto shift = bias.has_value() ? std::optional<at::Tensor>(faces.of(*bias)) : std::nullopt;
  return faces.back(at::convolution(faces.of(input), faces.of(weight), shift, stride, padding, dilation, transposed,
                                    output_padding, groups), input.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride, at::IntArrayRef padding,
    at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups, std::array<bool, 3> mask) {
  Faces faces;
  auto [first, second, third] = at::convolution_backward(
      faces.of(grad), faces.of(input), faces.of(weight), at::OptionalIntArrayRef({weight.size(transposed ? 1 : 0) * (transposed ? groups : 1)}),
      stride, padding, dilation, transposed, output_padding, groups, mask);
  const auto device = input.device();
  return {faces.back(first, device), faces.back(second, device), faces.back(third, device)};
}

// Arranged: torch knows its own dense devices only; among them a Parameter stays the same object when its module moves.
bool keeps_its_identity(const at::Tensor& self, const at::Tensor& from) {
  const auto dense = [](const at::Tensor& tensor) {
    return tensor.layout() == c10::kStrided && (tensor.device().type() == c10::kCPU || tensor.device().type() == kAccel);
  };
  return dense(self) && dense(from);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", &keeps_its_identity);
}

// Recurrent cells, which torch asks of every accelerator in one piece and of the CPU in parts.

using Pair = std::tuple<at::Tensor, at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Five = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using Maybe = std::optional<at::Tensor>;

at::Tensor with_bias(Faces& faces, const at::Tensor& gates, const Maybe& bias) {
  return bias.has_value() && bias->defined() ? faces.of(gates) + faces.of(*bias) : faces.of(gates);
}

Pair gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& hidden, const Maybe& input_bias,
              const Maybe& hidden_bias) {
  Faces faces;
  const auto input = with_bias(faces, input_gates, input_bias).chunk(3, 1);
  const auto from_hidden = with_bias(faces, hidden_gates, hidden_bias).chunk(3, 1);
  const auto before = faces.of(hidden);
  const auto reset = (input[0] + from_hidden[0]).sigmoid();
  const auto update = (input[1] + from_hidden[1]).sigmoid();
  const auto fresh = (input[2] + reset * from_hidden[2]).tanh();
  const auto after = (before - fresh) * update + fresh;
  const auto kept = at::cat({reset, update, fresh, before, from_hidden[2]}, 1);
  return {faces.back(after, hidden.device()), faces.back(kept, hidden.device())};
}

Five gru_cell_backward(const at::Tensor& grad, const at::Tensor& workspace, bool has_bias) {
  Faces faces;
  const auto kept = faces.of(workspace).chunk(5, 1);
  const auto &reset = kept[0], &update = kept[1], &fresh = kept[2], &before = kept[3], &from_hidden = kept[4];
  const auto of_after = faces.of(grad);
  const auto of_fresh = of_after * (1 - update) * (1 - fresh * fresh);
  const auto of_update = of_after * (before - fresh) * (1 - update) * update;
  const auto of_reset = of_fresh * from_hidden * (1 - reset) * reset;
  const auto input = at::cat({of_reset, of_update, of_fresh}, 1);
  const auto hidden = at::cat({of_reset, of_update, of_fresh * reset}, 1);
  const auto device = grad.device();
  const auto bias = [&](const at::Tensor& gates) { return has_bias ? faces.back(gates.sum(0), device) : at::Tensor(); };
  return {faces.back(input, device), faces.back(hidden, device), faces.back(of_after * update, device), bias(input), bias(hidden)};
}

Three lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cell, const Maybe& input_bias,
                const Maybe& hidden_bias) {
  Faces faces;
  const auto gates = (with_bias(faces, input_gates, input_bias) + with_bias(faces, hidden_gates, hidden_bias)).chunk(4, 1);
  const auto in = gates[0].sigmoid(), forget = gates[1].sigmoid(), fresh = gates[2].tanh(), out = gates[3].sigmoid();
  const auto after = forget * faces.of(cell) + in * fresh;
  const auto kept = at::cat({in, forget, fresh, out}, 1);
  const auto device = cell.device();
  return {faces.back(out * after.tanh(), device), faces.back(after, device), faces.back(kept, device)};
}

Three lstm_cell_backward(const Maybe& grad_hidden, const Maybe& grad_cell, const at::Tensor& cell, const at::Tensor& after,
                         const at::Tensor& workspace, bool has_bias) {
  Faces faces;
  const auto kept = faces.of(workspace).chunk(4, 1);
  const auto &in = kept[0], &forget = kept[1], &fresh = kept[2], &out = kept[3];
  const auto squashed = faces.of(after).tanh();
  const auto given = [&](const Maybe& grad) {
    return grad.has_value() && grad->defined() ? faces.of(*grad) : at::zeros_like(squashed);
  };
  const auto of_hidden = given(grad_hidden);
  const auto of_after = of_hidden * out * (1 - squashed * squashed) + given(grad_cell);
  const auto gates = at::cat({of_after * fresh * in * (1 - in), of_after * faces.of(cell) * forget * (1 - forget),
                              of_after * in * (1 - fresh * fresh), of_hidden * squashed * out * (1 - out)}, 1);
  const auto device = cell.device();
  return {faces.back(gates, device), faces.back(of_after * forget, device),
          has_bias ? faces.back(gates.sum(0), device) : at::Tensor()};
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl("resize_", &resize);
  m.impl("set_.source_Storage", &set_storage);
  m.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  m.impl("set_", &set_nothing);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", TORCH_FN(static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef)>(&at::native::view)));
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolution_backward);
  m.impl("_has_compatible_shallow_copy_type", &keeps_its_identity);
  m.impl("_thnn_fused_gru_cell", &gru_cell);
  m.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
  m.impl("_thnn_fused_lstm_cell", &lstm_cell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  at::RegisterPrivateUse1HooksInterface(&accel_hooks);
  m.def("device_count", [] { return kDevices; });
  m.def("current_device", [] { return static_cast<int>(current); });
  m.def("set_device", [](int index) {
    TORCH_CHECK(index >= 0 && index < kDevices, "invalid device ordinal");
    current = static_cast<c10::DeviceIndex>(index);
  });
  m.def("memory_allocated", [](int index) { return allocated.at(index).load(); });
  m.def("default_generator", [](int index) { return default_generator(static_cast<c10::DeviceIndex>(index)); });
  m.def("leave_unchecked", [](const std::vector<std::string>& names) { unchecked = {names.begin(), names.end()}; });
}
