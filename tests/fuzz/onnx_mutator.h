// Changes an ONNX model as what it is: fields of its messages, op types, names that tie nodes together.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "import/op_table.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace berth::fuzz {

class OnnxMutator {
 public:
  explicit OnnxMutator(unsigned seed) : random_(seed) {}

  void Mutate(onnx::ModelProto& model) {
    for (size_t changes = 1 + Below(4); changes > 0; --changes) {
      messages_.clear();
      strings_ = {""};
      Collect(model);
      Change(*messages_[Below(messages_.size())]);
    }
  }

 private:
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;
  using Reflection = google::protobuf::Reflection;

  size_t Below(size_t end) { return end == 0 ? 0 : random_() % end; }

  void Collect(Message& message) {
    messages_.push_back(&message);
    const Reflection& reflection = *message.GetReflection();
    std::vector<const Field*> fields;
    reflection.ListFields(message, &fields);
    for (const Field* field : fields) {
      const bool text = field->cpp_type() == Field::CPPTYPE_STRING;
      if (!text && field->cpp_type() != Field::CPPTYPE_MESSAGE) continue;
      const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        if (text) {
          strings_.push_back(field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                                  : reflection.GetString(message, field));
        } else {
          Collect(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                       : *reflection.MutableMessage(&message, field));
        }
      }
    }
  }

  void Change(Message& message) {
    const Reflection& reflection = *message.GetReflection();
    std::vector<const Field*> fields;
    reflection.ListFields(message, &fields);
    const google::protobuf::Descriptor& type = *message.GetDescriptor();
    // Mostly what is there; sometimes what could be.
    const bool there = !fields.empty() && Below(4) != 0;
    const Field* field = there ? fields[Below(fields.size())]
                               : type.field(static_cast<int>(Below(static_cast<size_t>(type.field_count()))));
    if (field->is_repeated()) {
      ChangeRepeated(message, reflection, *field);
    } else if (Below(6) == 0) {
      reflection.ClearField(&message, field);
    } else if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
      const auto other = Another(*field);
      Put(other, *reflection.MutableMessage(&message, field));
    } else {
      SetScalar(message, reflection, *field);
    }
  }

  void ChangeRepeated(Message& message, const Reflection& reflection, const Field& field) {
    const int size = reflection.FieldSize(message, &field);
    const auto some = [&] { return static_cast<int>(Below(static_cast<size_t>(size))); };
    switch (size == 0 ? 0 : Below(4)) {
      case 0:
        if (field.cpp_type() == Field::CPPTYPE_MESSAGE) {
          const auto other = Another(field);
          Put(other, *reflection.AddMessage(&message, &field));
        } else {
          SetScalar(message, reflection, field);
        }
        break;
      case 1:
        reflection.SwapElements(&message, &field, some(), size - 1);
        reflection.RemoveLast(&message, &field);
        break;
      case 2:
        reflection.SwapElements(&message, &field, some(), some());
        break;
      default:
        if (field.cpp_type() == Field::CPPTYPE_MESSAGE) {
          const auto other = Another(field);
          Put(other, *reflection.MutableRepeatedMessage(&message, &field, some()));
        } else {
          SetScalar(message, reflection, field, some());
        }
    }
  }

  // Some message of this type. A copy: it may lie within what it replaces, or go with it, as the members of a oneof do.
  std::unique_ptr<Message> Another(const Field& field) {
    std::vector<const Message*> same;
    for (const Message* other : messages_) {
      if (other->GetDescriptor() == field.message_type()) same.push_back(other);
    }
    if (same.empty()) return nullptr;
    const Message& other = *same[Below(same.size())];
    std::unique_ptr<Message> copy(other.New());
    copy->CopyFrom(other);
    return copy;
  }
  static void Put(const std::unique_ptr<Message>& from, Message& to) {
    if (from != nullptr) to.GetReflection()->Swap(&to, from.get());
  }

  int64_t Integer() {
    constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
    constexpr int64_t kOdd[] = {0,
                                1,
                                -1,
                                2,
                                3,
                                4,
                                -2,
                                7,
                                16,
                                64,
                                1000,
                                65536,
                                INT32_MAX,
                                INT32_MIN,
                                int64_t{1} << 31,
                                int64_t{1} << 40,
                                int64_t{1} << 62,
                                kMost,
                                kMost - 1,
                                kLeast};
    return Below(2) == 0 ? kOdd[Below(std::size(kOdd))] : static_cast<int64_t>(Below(16));
  }
  double Real() {
    constexpr double kOdd[] = {0, 1, -1, 0.5, 1e-30, 1e30, 3e38, 1e308, INFINITY, -INFINITY, NAN};
    return Below(2) == 0 ? kOdd[Below(std::size(kOdd))] : static_cast<double>(Below(16));
  }
  std::string String(const Field& field) {
    if (field.name() == "op_type" && Below(4) != 0) {
      std::string type(OpRules()[Below(OpRules().size())].type);
      return type.substr(type.rfind('.') + 1);
    }
    std::string text = strings_[Below(strings_.size())];
    if (Below(4) != 0) return text;
    const size_t size = text.size();
    text.resize(size + 16);
    text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size, text.size()));
    return text;
  }

  // Of a repeated field: of the element `at`, or of a new one.
  void SetScalar(Message& message, const Reflection& reflection, const Field& field, int at = -1) {
    const auto put = [&](auto set, auto set_at, auto add, auto value) {
      if (!field.is_repeated()) {
        (reflection.*set)(&message, &field, value);
      } else if (at >= 0) {
        (reflection.*set_at)(&message, &field, at, value);
      } else {
        (reflection.*add)(&message, &field, value);
      }
    };
    switch (field.cpp_type()) {
      case Field::CPPTYPE_INT32:
        return put(&Reflection::SetInt32, &Reflection::SetRepeatedInt32, &Reflection::AddInt32,
                   static_cast<int32_t>(Integer()));
      case Field::CPPTYPE_INT64:
        return put(&Reflection::SetInt64, &Reflection::SetRepeatedInt64, &Reflection::AddInt64, Integer());
      case Field::CPPTYPE_UINT64:
        return put(&Reflection::SetUInt64, &Reflection::SetRepeatedUInt64, &Reflection::AddUInt64,
                   static_cast<uint64_t>(Integer()));
      case Field::CPPTYPE_FLOAT:
        return put(&Reflection::SetFloat, &Reflection::SetRepeatedFloat, &Reflection::AddFloat,
                   static_cast<float>(Real()));
      case Field::CPPTYPE_DOUBLE:
        return put(&Reflection::SetDouble, &Reflection::SetRepeatedDouble, &Reflection::AddDouble, Real());
      case Field::CPPTYPE_ENUM:
        return put(&Reflection::SetEnumValue, &Reflection::SetRepeatedEnumValue, &Reflection::AddEnumValue,
                   static_cast<int>(Below(16)));
      case Field::CPPTYPE_STRING:
        if (!field.is_repeated()) return reflection.SetString(&message, &field, String(field));
        if (at >= 0) return reflection.SetRepeatedString(&message, &field, at, String(field));
        return reflection.AddString(&message, &field, String(field));
      default:
        return;
    }
  }

  std::minstd_rand random_;
  std::vector<Message*> messages_;
  std::vector<std::string> strings_;
};

}  // namespace berth::fuzz
