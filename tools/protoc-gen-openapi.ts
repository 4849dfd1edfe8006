/** The plugin of `buf generate` that writes `gen/openapi/openapi.json`. */
import { create, createFileRegistry } from "@bufbuild/protobuf";
import {
  CodeGeneratorResponse_Feature,
  CodeGeneratorResponseSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { runNodeJs } from "@bufbuild/protoplugin";
import { createDocument } from "./openapi/document.ts";

runNodeJs({
  name: "protoc-gen-openapi",
  version: "v1",
  run({ protoFile }) {
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: protoFile }));
    const content = `${JSON.stringify(createDocument(registry), null, 2)}\n`;
    return create(CodeGeneratorResponseSchema, {
      supportedFeatures: BigInt(CodeGeneratorResponse_Feature.PROTO3_OPTIONAL),
      file: [{ name: "openapi.json", content }],
    });
  },
});
