// Loads everything from this server: no external fonts, proxies, telemetry or assistants.
globalThis.Scalar.createApiReference("#reference", {
  url: "openapi.json",
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  hideClientButton: true,
  // Keeps the order of the contract, which has the most important properties first.
  orderSchemaPropertiesBy: "preserve",
  orderRequiredPropertiesFirst: false,
  // Does not store a key that is typed into the page.
  persistAuth: false,
});
