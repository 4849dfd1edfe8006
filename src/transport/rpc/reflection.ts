import {
  create,
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
  ServerReflectionResponseSchema,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  ServerReflection as ServerReflectionAlpha,
  ServerReflectionResponseSchema as ServerReflectionResponseAlphaSchema,
} from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;
type Question = ServerReflectionRequest["messageRequest"];

/**
 * Serves gRPC server reflection, v1 and v1alpha, for the given services; the two versions differ in their package only.
 * @param files what callers may meet although no service mentions it, such as the details of errors
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
  const ask = (question: Question) => answer(question, registry, [...known], described);
  router.service(ServerReflection, {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        const messageResponse = ask(request.messageRequest);
        yield create(ServerReflectionResponseSchema, {
          validHost: request.host,
          originalRequest: request,
          messageResponse,
        });
      }
    },
  });
  router.service(ServerReflectionAlpha, {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        const messageResponse = ask(request.messageRequest as Question) as never;
        yield create(ServerReflectionResponseAlphaSchema, {
          validHost: request.host,
          originalRequest: request,
          messageResponse,
        });
      }
    },
  });
}

function answer(
  question: Question,
  registry: Registry,
  known: readonly DescFile[],
  services: readonly DescService[],
): Answer {
  switch (question.case) {
    case "listServices":
      return { case: "listServicesResponse", value: { service: services.map(({ typeName }) => ({ name: typeName })) } };
    case "fileByFilename":
      return files(known.find(({ proto }) => proto.name === question.value));
    case "fileContainingSymbol":
      return files(symbol(registry, question.value));
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = question.value;
      return files(extensionsOf(registry, containingType).find(({ number }) => number === extensionNumber)?.file);
    }
    case "allExtensionNumbersOfType": {
      if (!registry.getMessage(question.value)) return problem(Code.NotFound, "There is no such message.");
      const extensionNumber = extensionsOf(registry, question.value).map(({ number }) => number);
      return { case: "allExtensionNumbersResponse", value: { baseTypeName: question.value, extensionNumber } };
    }
    default:
      return problem(Code.InvalidArgument, "The request asks for nothing.");
  }
}

/** The file that declares a symbol: a type, a service, an extension, or a member of one. */
function symbol(registry: Registry, name: string): DescFile | undefined {
  const found = registry.get(name);
  if (found) return found.file;
  const scope = scopeOf(name);
  const member = name.slice(scope.length + 1);
  const parent = registry.get(scope);
  if (parent?.kind === "service" && parent.methods.some((method) => method.name === member)) return parent.file;
  if (parent?.kind === "message" && parent.members.some((field) => field.name === member)) return parent.file;
  // As in C++, the values of an enum stand beside it, not in it.
  for (const type of registry) {
    const isBeside = type.kind === "enum" && scopeOf(type.typeName) === scope;
    if (isBeside && type.values.some((value) => value.name === member)) return type.file;
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

function files(file: DescFile | undefined): Answer {
  if (!file) return problem(Code.NotFound, "There is no such file or symbol.");
  const fileDescriptorProto = withDependencies(file).map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

/** The codes of gRPC and Connect are the same numbers. */
function problem(errorCode: Code, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}

function withDependencies(file: DescFile, seen = new Set<DescFile>()): DescFile[] {
  if (!seen.has(file)) {
    seen.add(file);
    for (const dependency of file.dependencies) withDependencies(dependency, seen);
  }
  return [...seen];
}
