import {
  createRegistry,
  type DescExtension,
  type DescFile,
  type DescService,
  type MessageInitShape,
  type Registry,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectRouter } from "@connectrpc/connect";
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";

type ReflectionResponse = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;
type ReflectionRequest = ServerReflectionRequest["messageRequest"];

/**
 * Adds gRPC server reflection, v1 and v1alpha, for the given services. The two versions differ only in their package.
 * @param files further files that callers need, such as those of error details
 */
export function addReflection(
  router: ConnectRouter,
  services: readonly DescService[],
  files: readonly DescFile[],
): void {
  const described = [...services, ServerReflection, ServerReflectionAlpha];
  const known = new Set<DescFile>();
  for (const file of [...files, ...described.map((service) => service.file)]) withDependencies(file, known);
  const registry = createRegistry(...known);
  const respondTo = (request: ReflectionRequest) => respond(request, registry, [...known], described);
  async function* serverReflectionInfo(requests: AsyncIterable<ServerReflectionRequest>) {
    for await (const request of requests) {
      yield { validHost: request.host, originalRequest: request, messageResponse: respondTo(request.messageRequest) };
    }
  }
  router.service(ServerReflection, { serverReflectionInfo });
  router.service(ServerReflectionAlpha, { serverReflectionInfo: serverReflectionInfo as never });
}

function respond(
  request: ReflectionRequest,
  registry: Registry,
  known: readonly DescFile[],
  services: readonly DescService[],
): ReflectionResponse {
  switch (request.case) {
    case "listServices":
      return { case: "listServicesResponse", value: { service: services.map(({ typeName }) => ({ name: typeName })) } };
    case "fileByFilename":
      return files(known.find(({ proto }) => proto.name === request.value));
    case "fileContainingSymbol":
      return files(symbol(registry, request.value));
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = request.value;
      return files(extensionsOf(registry, containingType).find(({ number }) => number === extensionNumber)?.file);
    }
    case "allExtensionNumbersOfType": {
      if (!registry.getMessage(request.value)) return problem(Code.NotFound, "There is no such message.");
      const extensionNumber = extensionsOf(registry, request.value).map(({ number }) => number);
      return { case: "allExtensionNumbersResponse", value: { baseTypeName: request.value, extensionNumber } };
    }
    default:
      return problem(Code.InvalidArgument, "The request asks for nothing.");
  }
}

/** Finds the file that declares a type, service or extension, or a member of one. */
function symbol(registry: Registry, name: string): DescFile | undefined {
  const found = registry.get(name);
  if (found) return found.file;
  const scope = scopeOf(name);
  const member = name.slice(scope.length + 1);
  const parent = registry.get(scope);
  if (parent?.kind === "service" && parent.methods.some((method) => method.name === member)) return parent.file;
  if (parent?.kind === "message" && parent.members.some((field) => field.name === member)) return parent.file;
  // Enum values are in the scope that contains the enum, as in C++.
  for (const type of registry) {
    const isInScope = type.kind === "enum" && scopeOf(type.typeName) === scope;
    if (isInScope && type.values.some((value) => value.name === member)) return type.file;
  }
  return undefined;
}

function scopeOf(name: string): string {
  return name.slice(0, Math.max(0, name.lastIndexOf(".")));
}

function extensionsOf(registry: Registry, typeName: string): DescExtension[] {
  return [...registry]
    .filter((type) => type.kind === "extension")
    .filter(({ extendee }) => extendee.typeName === typeName);
}

function files(file: DescFile | undefined): ReflectionResponse {
  if (!file) return problem(Code.NotFound, "There is no such file or symbol.");
  const fileDescriptorProto = withDependencies(file).map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

/** The codes of gRPC and Connect are the same numbers. */
function problem(errorCode: Code, errorMessage: string): ReflectionResponse {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}

function withDependencies(file: DescFile, seen = new Set<DescFile>()): DescFile[] {
  if (!seen.has(file)) {
    seen.add(file);
    for (const dependency of file.dependencies) withDependencies(dependency, seen);
  }
  return [...seen];
}
