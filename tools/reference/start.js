// Everything comes from here: no fonts, proxies, figures or helpers of others.
globalThis.Scalar.createApiReference("#reference", {
  url: "openapi.json",
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  hideClientButton: true,
  // As the contract has them: what matters most comes first.
  orderSchemaPropertiesBy: "preserve",
  orderRequiredPropertiesFirst: false,
  // A key that is typed into the page is gone with the page.
  persistAuth: false,
});
