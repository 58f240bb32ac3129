//! Schemas of arguments, from Rust types, as lean as models need them.

use mainstay_message::Schema;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Outcome;

/// The JSON schema of a tool's arguments. Doc comments of the fields are what the model reads.
pub fn parameters<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    strip(&mut schema);
    Schema::from(schema)
}

/// Reads a call's arguments; a failure tells the model what is wrong with them.
pub fn arguments<T: DeserializeOwned>(arguments: &Value) -> Result<T, Outcome> {
    T::deserialize(arguments)
        .map_err(|error| Outcome::failed(format!("Invalid arguments: {error}. Nothing was done.")))
}

/// Takes out what costs tokens and tells a model nothing.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for key in ["$schema", "title", "format", "minimum", "default"] {
                // A property may have such a name; its schema is an object then.
                if object.get(key).is_some_and(|value| !value.is_object()) {
                    object.remove(key);
                }
            }
            // An optional argument is left out, not null.
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(words)) = object.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            object.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    struct Example {
        /// What to do.
        what: String,
        /// How often.
        times: Option<u64>,
    }

    #[test]
    fn a_schema_holds_what_a_model_needs_and_no_more() {
        let expected = json!({
            "type": "object",
            "properties": {
                "what": { "description": "What to do.", "type": "string" },
                "times": { "description": "How often.", "type": "integer" },
            },
            "required": ["what"],
        });
        let schema = parameters::<Example>();
        assert_eq!(serde_json::from_str::<Value>(schema.as_str()).unwrap(), expected);
    }

    #[test]
    fn wrong_arguments_are_told_in_words() {
        let Err(outcome) = arguments::<Example>(&json!({ "times": 1 })) else {
            panic!("a missing argument was accepted");
        };
        assert!(outcome.failed);
        assert!(outcome.content("n")[0].text().unwrap().contains("missing field `what`"));
        let example = arguments::<Example>(&json!({ "what": "x" })).unwrap();
        assert_eq!((example.what.as_str(), example.times), ("x", None));
    }
}
